import { parseDurationMs } from '@weir/policy/policy-values.ts'
import type { Spot } from './foreign-file.ts'
import { durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import type { Entry } from './yaml-config.ts'

type Router = { readonly spot: Spot; readonly rule: string; readonly middlewares: readonly string[] }

/** A matcher of a rule, in any case, with texts in backticks or quotes. */
const matcher = /^\s*(\w+)\(\s*((?:[`"'][^`"']*[`"'][\s,]*)*)\)\s*$/
const annotation = 'traefik.ingress.kubernetes.io/router.middlewares'
const sections = ['http', 'tcp', 'udp', 'tls', 'entryPoints']

/** Converts `rateLimit` middlewares of Traefik and the routers that have them, of files or of Kubernetes. */
export const importTraefik = (files: readonly InputFile[]): ImportResult => new TraefikImport(files).run()

class TraefikImport extends HttpPolicy {
  readonly #middlewares = new Map<string, Entry>()
  readonly #routers: Router[] = []
  readonly #used = new Set<string>()

  #read(document: Entry): void {
    const [kind, http] = [document.text('kind'), document.at('http')]
    const isKnown = kind !== '' || document.isEmpty || sections.some((name) => document.fields.has(name))
    if (!isKnown) document.problem('must be a dynamic Traefik configuration or Kubernetes resources')
    if (kind !== '') this.#readResource(kind, document)
    for (const [name, body] of this.done(http.at('middlewares')).entries()) this.#middlewares.set(name, body)
    for (const [, router] of http.at('routers').entries()) this.#addRouter(router, router.text('rule'), '')
  }

  run(): ImportResult {
    for (const document of this.documents()) this.#read(document)
    for (const one of this.#routers) this.#addRoutes(one)
    const unused = [...this.#middlewares].filter(
      ([name, { fields }]) => fields.has('rateLimit') && !this.#used.has(name),
    )
    const [first] = unused
    if (first !== undefined && this.#routers.length === 0) {
      const limits = unused.flatMap(([name, body]) => this.#limit(name, body) ?? [])
      const what = `the files have no router: ${limits.join(', ')} is on all paths`
      this.changed(first[1], what, 'Also name the files with the routers, or write its paths.')
      this.route(first[1], '/', limits)
    } else
      for (const [name, body] of unused)
        this.lost(this.done(body.at('rateLimit')), `no router in the files has ${name}`)
    this.nameRest(/^(?:ratelimit|inflight\w+|plugin|.*middlewares)$/i)
    return this.result()
  }

  #readResource(kind: string, resource: Entry): void {
    const [metadata, spec] = [resource.at('metadata'), resource.at('spec')]
    const namespace = metadata.text('namespace') || 'default'
    if (kind === 'Middleware') this.#middlewares.set(`${namespace}-${metadata.text('name')}`, spec)
    if (kind === 'IngressRoute')
      for (const route of spec.items('routes')) this.#addRouter(route, route.text('match'), namespace)
    if (kind !== 'Ingress') return
    const written = this.done(metadata.at('annotations').at(annotation)).asText()
    const middlewares = written.split(',').filter((one) => one.trim() !== '')
    for (const rule of spec.items('rules')) {
      const host = rule.text('host') === '' ? '' : ' && Host(``)'
      for (const path of rule.at('http').items('paths')) {
        const match = `${path.text('pathType') === 'Exact' ? 'Path' : 'PathPrefix'}(\`${path.text('path') || '/'}\`)${host}`
        this.#routers.push({ spot: path, rule: match, middlewares })
      }
    }
  }

  #addRouter(router: Entry, rule: string, namespace: string): void {
    if (!['', '0'].includes(router.text('priority')))
      this.changed(
        router.at('priority'),
        'priority: here the most specific path wins',
        'Check whether this makes a difference.',
      )
    this.#routers.push({ spot: router, rule, middlewares: this.#refs(router, namespace) })
  }

  /** The names of the middlewares of a router or chain; those of Kubernetes have their namespace in front. */
  #refs(owner: Entry, namespace: string): readonly string[] {
    this.done(owner.at('middlewares'))
    return owner
      .items('middlewares')
      .map((one) => (one.isMap ? `${one.text('namespace') || namespace}-${one.text('name')}` : one.asText()))
  }

  /** The middlewares of these names that limit; a chain is the ones that it names. */
  #limiters(
    names: readonly string[],
    spot: Spot,
    above: readonly string[] = [],
  ): readonly (readonly [string, Entry])[] {
    return names.flatMap((written) => {
      const name = written.trim().replace(/@\w+$/, '')
      const body = this.#middlewares.get(name)
      const isRead = body !== undefined && !above.includes(name)
      if (!isRead) this.lost(spot, `middleware ${name} is not in the files`, 'Also name its file if it has limits.')
      if (!isRead) return []
      if (body.fields.has('rateLimit')) return [[name, body]] as const
      return this.#limiters(this.#refs(body.at('chain'), name.split('-')[0] ?? ''), spot, [...above, name])
    })
  }

  #addRoutes({ spot, rule, middlewares }: Router): void {
    const limits = this.#limiters(middlewares, spot).flatMap(([name, body]) => this.#limit(name, body) ?? [])
    for (const alternative of rule.split('||')) {
      const parts = alternative.split('&&').map((part) => matcher.exec(part))
      const of = (kind: RegExp) => parts.filter((part) => kind.test(part?.[1] ?? '')).map((part) => textsIn(part?.[2]))
      const [paths = ['/'], ...others] = of(/^path(?:prefix)?$/i)
      const [methods, ...more] = of(/^method$/i)
      const isOdd = others.length + more.length > 0 || of(/^(?:path|pathprefix|method|host.*)$/i).length < parts.length
      if (of(/^host/i).length > 0) this.anyHost(spot)
      for (const path of isOdd ? [`rule ${alternative.trim()}`] : paths)
        this.route(spot, path, limits, methods, of(/^path$/i).length > 0)
    }
  }

  /** The name of the limit that a middleware is on a router: each router has counts of its own. */
  #limit(name: string, body: Entry): string | undefined {
    this.#used.add(name)
    const limit = this.done(body.at('rateLimit'))
    this.nameUnknown(limit.fields, /^(?:average|period|burst|sourceCriterion)$/, name)
    const average = limit.number('average') ?? 0
    const periodMs = goDurationMs(limit.text('period'))
    if (periodMs === undefined) return limit.at('period').problem('`period` must be a duration such as 1m30s')
    if (average === 0) this.info(body, `${name} limits nothing, without an average`, 'Write one if you need it.')
    if (average === 0) return undefined
    const by = this.#byOf(name, limit.at('sourceCriterion'))
    // A window is 100 ms at least: what is shorter is written as a multiple.
    const times = Math.ceil(100 / periodMs)
    // A request waits for up to half the time between two, so that one waits at most.
    const waitMs = Math.floor(Math.min(500, 500 / Math.floor(Math.max(1, (average * 1_000) / periodMs))))
    if (waitMs > 0)
      this.info(body, `a request waits for up to ${waitMs} ms in the proxy; at forward-auth it is refused`)
    return this.limit(name, body, {
      algorithm: 'token_bucket',
      size: average * times,
      window: durationText(periodMs * times),
      burst: Math.max(1, limit.number('burst') ?? 1),
      by: [by],
      ...(waitMs > 0 ? { onExceed: { delay: durationText(waitMs), queue: 1 } } : {}),
    })
  }

  #byOf(name: string, criterion: Entry): string {
    this.nameUnknown(criterion.fields, /^(?:ipStrategy|requestHeaderName|requestHost)$/, name)
    const header = criterion.text('requestHeaderName')
    if (header !== '') return this.byHeader(criterion, header)
    const strategy = criterion.at('ipStrategy')
    if (criterion.flag('requestHost')) return 'header:host'
    if (strategy.fields.size > 0)
      this.changed(strategy, `ipStrategy of ${name}: the address is what identity.trustedProxies leaves`)
    return 'ip'
  }
}

const textsIn = (list = '') => [...list.matchAll(/[`"']([^`"']*)[`"']/g)].map(([, text = '']) => text)

/** A duration of Go, or whole seconds, in milliseconds; without any a second. */
function goDurationMs(text: string): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000 || 1_000
  const parts = text.match(/\d{1,9}(?:ms|[smh])/g) ?? []
  if (parts.join('') !== text) return undefined
  return parts.reduce((sum, part) => sum + (parseDurationMs(part) ?? 0), 0) || 1_000
}
