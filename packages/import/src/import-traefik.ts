import type { JsonObject } from '@weir/policy/entities.ts'
import type { ForeignValue, Spot } from './foreign-file.ts'
import { byHeader, durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import { type Fields, withoutConfigMaps, YamlConfig } from './yaml-config.ts'

interface Middleware extends Spot {
  readonly name: string
  readonly body: Fields
  readonly yaml: YamlConfig
}

interface Router extends Spot {
  readonly name: string
  readonly rule: string
  readonly middlewares: readonly string[]
}

/** A middleware's kinds are read whatever their capitals, as Traefik does. */
const lower = (fields: Fields) => new Map([...fields].map(([name, value]) => [name.toLowerCase(), value] as const))
/** What a middleware that limits has, without case. */
const knownFields = ['average', 'period', 'burst', 'sourcecriterion', 'redis']
const knownCriteria = ['ipstrategy', 'requestheadername', 'requesthost']
/** A matcher of a rule, in any case, with texts in backticks or quotes. */
const matcher = /^\s*(\w+)\(\s*((?:[`"'][^`"']*[`"'][\s,]*)*)\)\s*$/
/** Chains within chains end here. */
const depthMax = 8

/** Converts `rateLimit` middlewares of Traefik and the routers that have them, of files or of Kubernetes. */
export function importTraefik(files: readonly InputFile[]): ImportResult {
  const importing = new TraefikImport()
  for (const { name, text, linesBefore } of withoutConfigMaps(files))
    importing.read(new YamlConfig(name, linesBefore), text)
  return importing.result(files)
}

class TraefikImport {
  readonly #policy = new HttpPolicy()
  readonly #yamls: YamlConfig[] = []
  readonly #middlewares: Middleware[] = []
  readonly #routers: Router[] = []
  readonly #used = new Set<Middleware>()
  /** Limits whose counts all routers share. */
  readonly #shared = new Map<Middleware, string>()

  read(yaml: YamlConfig, text: string): void {
    this.#yamls.push(yaml)
    for (const document of yaml.file.documents(text)) {
      const fields = yaml.fields(document)
      const kind = yaml.text(fields, 'kind')
      if (kind !== '') this.#readResource(yaml, kind, fields, document)
      else if (!['http', 'tcp', 'udp', 'tls', 'entryPoints'].some((name) => fields.has(name)) && fields.size > 0)
        yaml.file.problem(document, 'must be a dynamic configuration of Traefik, or resources of Kubernetes')
      const http = yaml.fields(fields.get('http'))
      for (const [name, value] of yaml.fields(http.get('middlewares'))) this.#readMiddleware(yaml, name, value)
      for (const [name, value] of yaml.fields(http.get('routers'))) {
        const own = yaml.fields(value)
        this.#addRouter(yaml, own, {
          ...spotOf(value),
          name,
          rule: yaml.text(own, 'rule'),
          middlewares: yaml.texts(own, 'middlewares'),
        })
      }
      for (const [name, value] of yaml.fields(fields.get('entryPoints'))) {
        const own = yaml.fields(yaml.fields(value).get('http')).get('middlewares')
        if (own === undefined) continue
        const what = `middlewares of the entry point ${name} apply to every router`
        this.#policy.note(own, 'lost', what, 'Write them into each router too.')
      }
      const tcp = yaml.fields(fields.get('tcp')).get('middlewares')
      if (tcp !== undefined) this.#policy.note(tcp, 'lost', 'Weir does not count connections', 'Leave it to Traefik.')
    }
  }

  result(files: readonly InputFile[]): ImportResult {
    for (const one of this.#routers) this.#addRoutes(one)
    const unused = this.#middlewares.filter((one) => one.body.has('ratelimit') && !this.#used.has(one))
    for (const one of unused) {
      if (this.#routers.length > 0) {
        this.#policy.note(one, 'lost', `no router in the files has ${one.name}`, 'Name the files of its routers too.')
      }
    }
    if (this.#routers.length === 0 && unused.length > 0) {
      const limits = unused.flatMap((one) => this.#limit(one, one) ?? [])
      const [first] = unused
      if (first !== undefined) {
        const what = `the files have no router: ${limits.join(', ')} is on all paths`
        this.#policy.note(first, 'changed', what, 'Name the files of the routers too, or write its paths.')
        this.#policy.prefix(['*'], '/', limits, first)
      }
    }
    const problems = this.#yamls.flatMap(({ file }) => file.problems)
    return problems.length > 0 ? { kind: 'problems', problems } : this.#policy.result(files)
  }

  #readResource(yaml: YamlConfig, kind: string, fields: Fields, spot: Spot): void {
    const metadata = yaml.fields(fields.get('metadata'))
    const [name, namespace] = [yaml.text(metadata, 'name'), yaml.text(metadata, 'namespace') || 'default']
    const spec = fields.get('spec')
    for (const item of kind === 'List' ? yaml.items(fields.get('items')) : []) {
      const own = yaml.fields(item)
      this.#readResource(yaml, yaml.text(own, 'kind'), own, item)
    }
    if (kind === 'Middleware' && spec !== undefined) this.#readMiddleware(yaml, `${namespace}-${name}`, spec)
    if (kind === 'IngressRoute') {
      for (const route of yaml.items(yaml.fields(spec).get('routes'))) {
        const own = yaml.fields(route)
        const middlewares = yaml.items(own.get('middlewares')).map((item) => {
          const ref = yaml.fields(item)
          return `${yaml.text(ref, 'namespace') || namespace}-${yaml.text(ref, 'name')}`
        })
        this.#addRouter(yaml, own, { ...spotOf(route), name, rule: yaml.text(own, 'match'), middlewares })
      }
    }
    if (kind === 'Ingress') this.#readIngress(yaml, name, yaml.fields(spec), yaml.fields(metadata.get('annotations')))
    if (kind === 'MiddlewareTCP')
      this.#policy.note(spot, 'lost', 'Weir does not count connections', 'Leave it to Traefik.')
  }

  #readIngress(yaml: YamlConfig, name: string, spec: Fields, annotations: Fields): void {
    const written = yaml.text(annotations, 'traefik.ingress.kubernetes.io/router.middlewares')
    const middlewares = written
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '')
    for (const rule of yaml.items(spec.get('rules'))) {
      const fields = yaml.fields(rule)
      const host = yaml.text(fields, 'host')
      for (const path of yaml.items(yaml.fields(fields.get('http')).get('paths'))) {
        const own = yaml.fields(path)
        const kind = yaml.text(own, 'pathType') === 'Exact' ? 'Path' : 'PathPrefix'
        const text = `${kind}(\`${yaml.text(own, 'path') || '/'}\`)${host === '' ? '' : ` && Host(\`${host}\`)`}`
        this.#routers.push({ ...spotOf(path), name, rule: text, middlewares })
      }
    }
  }

  #addRouter(yaml: YamlConfig, own: Fields, router: Router): void {
    const priority = yaml.text(own, 'priority')
    if (priority !== '' && priority !== '0')
      this.#policy.note(
        router,
        'changed',
        `priority of ${router.name}: here the most specific path wins`,
        'Look whether it differs.',
      )
    this.#routers.push(router)
  }

  #readMiddleware(yaml: YamlConfig, name: string, value: ForeignValue): void {
    const body = lower(yaml.fields(value))
    this.#middlewares.push({ ...spotOf(value), name, body, yaml })
    const lose = (field: ForeignValue | undefined, what: string, advice: string) => {
      if (field !== undefined) this.#policy.note(field, 'lost', `${name}: ${what}`, advice)
    }
    lose(body.get('inflightreq'), 'Weir does not count requests in flight', 'Leave it to Traefik.')
    lose(body.get('plugin'), 'a plugin may limit requests, and is not known here', 'Look up what it does.')
  }

  /** The middlewares of these names that limit; a chain is the ones that it names. */
  #limiters(names: readonly string[], depth: number): readonly Middleware[] {
    return names.flatMap((written) => {
      const name = written.replace(/@\w+$/, '')
      const found = this.#middlewares.filter((one) => one.name === name)
      return found.flatMap((one) => {
        const chain = one.yaml.fields(one.body.get('chain')).get('middlewares')
        const members = one.yaml.items(chain).map((item) => {
          const isMap = typeof item.node === 'object' && item.node !== null && 'items' in item.node
          if (!isMap) return one.yaml.file.text(item, 'middlewares') ?? ''
          const ref = one.yaml.fields(item)
          return `${one.yaml.text(ref, 'namespace') || name.split('-')[0]}-${one.yaml.text(ref, 'name')}`
        })
        return [
          ...(one.body.has('ratelimit') ? [one] : []),
          ...(depth < depthMax ? this.#limiters(members, depth + 1) : []),
        ]
      })
    })
  }

  #addRoutes(router: Router): void {
    const known = this.#middlewares.map(({ name }) => name)
    for (const name of router.middlewares.map((one) => one.replace(/@\w+$/, ''))) {
      if (!known.includes(name))
        this.#policy.note(
          router,
          'lost',
          `middleware ${name} is in none of the files`,
          'Name its file too if it limits.',
        )
    }
    const limiters = this.#limiters(router.middlewares, 0)
    for (const one of limiters) this.#used.add(one)
    const limits = limiters.flatMap((one) => this.#limit(one, router) ?? [])
    for (const alternative of router.rule.split('||')) this.#addAlternative(alternative, limits, router)
  }

  #addAlternative(rule: string, limits: readonly string[], router: Router): void {
    const parts = rule.split('&&').map((part) => matcher.exec(part))
    const textsOf = (name: string) =>
      parts
        .filter((part) => part?.[1]?.toLowerCase() === name)
        .map((part) => [...(part?.[2] ?? '').matchAll(/[`"']([^`"']*)[`"']/g)].map(([, text = '']) => text))
    const [prefixes, exact, methods] = ['pathprefix', 'path', 'method'].map(textsOf) as [
      string[][],
      string[][],
      string[][],
    ]
    const hasHost = parts.some((part) => /^Host(?:Regexp|Header|SNI)?$/i.test(part?.[1] ?? ''))
    const isKnown = parts.every((part) => /^(?:PathPrefix|Path|Method|Host\w*)$/i.test(part?.[1] ?? ''))
    if (!isKnown || prefixes.length + exact.length > 1 || methods.length > 1) {
      const what = `rule ${rule.trim()}: no route can say so; it has ${limits.join(', ') || 'no limit'}`
      this.#policy.note(router, 'lost', what, 'Write routes for the paths that are meant.')
      return
    }
    if (hasHost)
      this.#policy.note(
        router,
        'changed',
        'routes know no host: this one is for every host',
        'Import each host by itself.',
      )
    const words = methods[0] ?? ['*']
    for (const path of exact[0] ?? [])
      for (const word of words) this.#policy.route(word.toUpperCase(), path, limits, router)
    const begun = prefixes[0] ?? (exact.length > 0 ? [] : ['/'])
    for (const path of begun)
      this.#policy.prefix(
        words.map((word) => word.toUpperCase()),
        path,
        limits,
        router,
      )
  }

  /** The name of the limit that a middleware is on a router: each router has counts of its own. */
  #limit(middleware: Middleware, router: Spot): string | undefined {
    const { name, body, yaml } = middleware
    const shared = this.#shared.get(middleware)
    if (shared !== undefined) return shared
    const fields = lower(yaml.fields(body.get('ratelimit')))
    for (const [key, field] of fields) {
      if (!knownFields.includes(key))
        this.#policy.note(field, 'lost', `${key} of ${name}: not known here`, 'Look it up.')
    }
    const average = yaml.number(fields, 'average') ?? 0
    const written = yaml.text(fields, 'period')
    const periodMs = written === '' || written === '0' ? 1_000 : goDurationMs(written)
    if (periodMs === undefined)
      return yaml.file.problem(fields.get('period') ?? middleware, '`period` must be a duration such as 1m30s')
    if (average === 0) {
      this.#policy.note(middleware, 'info', `${name} limits nothing, without an average`, 'Write one if it was meant.')
      return undefined
    }
    const by = this.#byOf(middleware, lower(yaml.fields(fields.get('sourcecriterion'))))
    // A window is 100 ms at least: what is shorter is written as a multiple.
    const times = Math.max(1, Math.ceil(100 / periodMs), Number.isInteger(periodMs) ? 1 : 1_000)
    const limit = this.#policy.limit(name, middleware, {
      ...{ algorithm: 'token_bucket', size: average * times, window: durationText(Math.round(periodMs * times)) },
      ...{
        burst: Math.max(1, yaml.number(fields, 'burst') ?? 1),
        by: [by],
        ...this.#waiting((average * 1_000) / periodMs, middleware),
      },
    })
    if (fields.has('redis')) this.#shared.set(middleware, limit)
    else if (this.#used.has(middleware) && limit !== name) {
      this.#policy.note(router, 'info', `${limit} counts by itself, as ${name} does on each router`, 'Nothing.')
    }
    return limit
  }

  /** Traefik lets a request wait for up to half the time between two, so that one waits at most. */
  #waiting(perSecond: number, spot: Spot): JsonObject {
    const ms = perSecond < 1 ? 500 : Math.floor(1_000 / (Math.floor(perSecond) * 2))
    if (ms === 0) return {}
    const what = `a request waits for up to ${ms} ms in the proxy of Weir; through forward-auth it is refused`
    this.#policy.note(spot, 'info', what, 'Nothing behind the proxy.')
    return { onExceed: { delay: durationText(ms), queue: 1 } }
  }

  #byOf({ name, yaml, ...spot }: Middleware, criterion: Fields): string {
    for (const [key, field] of criterion) {
      if (!knownCriteria.includes(key))
        this.#policy.note(field, 'lost', `${key} of ${name}: not known here`, 'Look it up.')
    }
    const header = yaml.text(criterion, 'requestheadername')
    if (header !== '') {
      if (byHeader(header) === 'key')
        this.#policy.note(
          spot,
          'changed',
          `${header} carries a credential: it counts by API key`,
          'Make a key for each caller.',
        )
      return byHeader(header)
    }
    if (yaml.flag(criterion, 'requesthost', false)) return 'header:host'
    const strategy = criterion.get('ipstrategy')
    if (strategy !== undefined && yaml.fields(strategy).size > 0) {
      const what = `ipStrategy of ${name}: Weir takes the address that identity.trustedProxies leaves`
      this.#policy.note(strategy, 'changed', what, 'List the proxies in front there.')
    }
    return 'ip'
  }
}

const spotOf = ({ file, line }: Spot): Spot => ({ file, line })

/** A duration of Go, or whole seconds, in milliseconds. */
function goDurationMs(text: string): number | undefined {
  const unitsMs: Readonly<Record<string, number>> = {
    ns: 1e-6,
    us: 1e-3,
    µs: 1e-3,
    ms: 1,
    s: 1_000,
    m: 60_000,
    h: 3_600_000,
  }
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  if (!/^(?:\d{1,9}(?:\.\d{1,6})?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  const parts = [...text.matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)]
  const ms = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitsMs[unit] ?? 0), 0)
  return ms > 0 ? ms : undefined
}
