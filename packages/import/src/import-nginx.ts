import type { JsonObject } from '@weir/policy/entities.ts'
import { type ImportProblem, type Spot, spotName } from './foreign-file.ts'
import { byHeader, durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import type { Directive } from './nginx-file.ts'
import { readNginxFiles } from './nginx-includes.ts'

/** A `limit_req_zone` whose key a policy can count by. */
interface Zone extends Spot {
  readonly by: readonly string[]
  readonly rate: number
  readonly unit: 's' | 'm'
}

/** The limits of a level of the configuration: its own, or else those of the level above. */
interface Scope {
  readonly uses: readonly Directive[]
  readonly status: Directive | undefined
  readonly isDryRun: boolean
}

interface Path extends Spot {
  /** `=`, `^~`, `~`, `~*`, `@`, or empty for any path that begins so. */
  readonly kind: string
  readonly path: string
  readonly scope: Scope
}

/** Longer waits, and longer queues, a policy does not have. */
const [delayMsMax, queueMax] = [60_000, 10_000]
/** Files of distributions in which nothing is limited. */
const harmless = /(?:^|\/)(?:mime\.types|(?:fastcgi|uwsgi|scgi|proxy)_params|fastcgi\.conf)$/
const knownNames = ['limit_req_zone', 'limit_req', 'limit_req_status', 'limit_req_dry_run', 'limit_req_log_level']
const all = ['*']

/** Converts `limit_req` of nginx to limits, and the locations that they are in to routes. */
export function importNginx(files: readonly InputFile[]): ImportResult {
  const { directives, problems } = readNginxFiles(files)
  return problems.length > 0 ? { kind: 'problems', problems } : new NginxImport(directives).run(files)
}

class NginxImport {
  readonly #policy = new HttpPolicy()
  readonly #problems: ImportProblem[] = []
  readonly #zones = new Map<string, Zone | undefined>()
  /** The names of limits by zone, and by how the zone is used. */
  readonly #names = new Map<string, Map<string, string>>()
  readonly #http: readonly Directive[]
  /** Zones that some `limit_req` has, wherever it is. */
  readonly #used = new Set<string>()
  readonly #variables = new Map<string, Directive>()

  /** A file of `conf.d` has what is in `http`, without it. */
  constructor(directives: readonly Directive[]) {
    for (const one of directives) {
      this.#nameOthers(one)
      if (one.name !== 'location' && one.name !== 'if') continue
      const what = `${one.name} ${one.args.join(' ')} is in no server`
      this.#policy.note(one, 'lost', what, 'Name the file that includes it too.')
    }
    this.#http = directives.flatMap((one) => (one.name === 'http' ? (one.block ?? []) : one))
  }

  run(files: readonly InputFile[]): ImportResult {
    for (const one of this.#http) {
      if (['map', 'geo', 'split_clients'].includes(one.name)) this.#variables.set(one.args.at(-1) ?? '', one)
    }
    for (const one of this.#http) if (one.name === 'limit_req_zone') this.#readZone(one)
    const top = scopeOf(this.#http, { uses: [], status: undefined, isDryRun: false })
    const servers = this.#http.filter(({ name, block }) => name === 'server' && block !== undefined)
    const limited = servers.filter((one) => pathsOf(one, top).some(({ scope }) => scope.uses.length > 0))
    for (const one of limited) this.#routesOf(one, pathsOf(one, top))
    const [use] = top.uses
    if (servers.length === 0 && use !== undefined)
      this.#routesOf(use, [{ ...spotOf(use), kind: '', path: '/', scope: top }])
    for (const [name, zone] of this.#zones) {
      if (zone !== undefined && !this.#used.has(name))
        this.#policy.note(
          zone,
          'info',
          `no limit_req in the files has zone ${name}`,
          'Name the files that use it, if any.',
        )
    }
    const [first] = limited
    for (const one of servers) {
      if (first === undefined || one === first || one.block?.some(({ name }) => name === 'return')) continue
      const what = `routes know no host: requests to this server meet the limits that its paths have at ${spotName(first)}`
      this.#policy.note(one, 'changed', what, 'Import each server by itself if they come to one Weir.')
    }
    if (this.#problems.length > 0) return { kind: 'problems', problems: this.#problems }
    return this.#policy.result(files)
  }

  /** Adds a note for everything else that limits requests, or may. */
  #nameOthers({ name, args, block, ...spot }: Directive): void {
    const lose = (why: string, advice: string) =>
      this.#policy.note(spot, 'lost', `${[name, ...args].join(' ').slice(0, 100)}: ${why}`, advice)
    if (name === 'include' && !harmless.test(args[0] ?? '')) {
      lose('this file is not read', 'Name it on the command line too if it limits requests.')
    } else if (/^limit_conn/.test(name)) lose('Weir does not count connections', 'Leave it to nginx.')
    else if (/^limit_rate/.test(name)) lose('Weir does not bound bandwidth', 'Leave it to nginx.')
    else if (/^limit_/.test(name) && name !== 'limit_except' && !knownNames.includes(name)) {
      lose('this directive is not known here', 'Look up what it limits, and write that into the policy.')
    } else if (/^(?:access|rewrite)_by_lua/.test(name)) lose('code may limit requests, and is not read', 'Read it.')
    if (name === 'limit_req') for (const text of args) this.#used.add(text.replace(/^zone=/, ''))
    for (const one of block ?? []) this.#nameOthers(one)
  }

  #readZone(directive: Directive): void {
    const { args, file, line } = directive
    const [key = '', ...others] = args
    const name = others.map((one) => /^zone=([^:]+):/.exec(one)?.[1]).find((one) => one !== undefined)
    const rate = others.map((one) => /^rate=(\d{1,9})r\/([sm])$/.exec(one)).find((one) => one !== null)
    if (name === undefined || rate === undefined || Number(rate[1]) === 0) {
      const message = 'limit_req_zone must have a key, zone=NAME:SIZE and rate=Nr/s or Nr/m'
      this.#problems.push({ file, line, message })
      return
    }
    for (const one of others.filter((text) => !/^(?:zone=|rate=|sync$)/.test(text)))
      this.#policy.note(directive, 'lost', `${one} of zone ${name}: not known here`, 'Look up what it counts.')
    const by = this.#byOf(key, directive)
    const [count, unit] = [Number(rate[1]), rate[2] === 's' ? 's' : 'm'] as const
    this.#zones.set(name, by && { file, line, by, rate: count, unit })
    if (unit === 's' || (count * 1_000) % 60 === 0) return
    const exact = Math.floor((count * 1_000) / 60) / 1_000
    const what = `nginx rounds ${count}r/m down to ${exact} a second; the limit is ${count} a minute`
    this.#policy.note(directive, 'changed', what, 'Nothing, if the number as written was meant.')
  }

  /** What a key counts apart; undefined, with a note, for a key that no limit counts by. */
  #byOf(key: string, spot: Directive): readonly string[] | undefined {
    const texts = [...key.matchAll(/\$\{?(\w+)\}?|[^$]+/g)].map(
      ([text, variable]) => variable ?? (text === '' ? '' : null),
    )
    const by = texts.map((variable) => (variable === null ? 'global' : partOf(variable)))
    const unknown = texts.find((_, at) => by[at] === undefined)
    const parts = [...new Set(by.filter((part) => part !== undefined))]
    const apart = parts.length > 1 ? parts.filter((part) => part !== 'global') : parts
    if (unknown !== undefined || apart.length > 8) {
      const set = this.#variables.get(`$${unknown}`)
      const where = set === undefined ? '' : `, which ${set.name} sets at ${spotName(set)}`
      const what = `no limit counts by ${unknown === undefined ? `${apart.length} things` : `$${unknown}`}${where}; the zone is left out`
      this.#policy.note(spot, 'lost', what, 'Write a limit by subject, ip, header or query for what is meant.')
      return undefined
    }
    if (apart.includes('key')) {
      const what =
        'this header carries a credential: the limit counts by API key, and Weir refuses keys that it does not know'
      this.#policy.note(spot, 'changed', what, 'Make a key for each caller.')
    } else if (!parts.some((part) => ['ip', 'global', 'method'].includes(part))) {
      const what = `requests without ${key} are counted together; nginx does not count them`
      this.#policy.note(spot, 'changed', what, 'Nothing, if every request has it.')
    }
    if (/\$\{?host\b/.test(key))
      this.#policy.note(spot, 'changed', '$host is the Host header as it came, with its port', 'Nothing, usually.')
    return apart
  }

  #routesOf(server: Spot, paths: readonly Path[]): void {
    const limitsOf = ({ uses, ...rest }: Scope) => uses.flatMap((use) => this.#limit(use, rest) ?? [])
    const [first, ...others] = paths.map(({ scope }) => scope)
    if (first === undefined) return
    if (others.every((other) => isSameScope(other, first))) {
      this.#policy.prefix(all, '/', limitsOf(first), server)
      return
    }
    for (const { kind: how, path, scope, ...spot } of paths) {
      if (how === '=') this.#policy.route('*', path, limitsOf(scope), spot)
      else if (how === '' || how === '^~') this.#policy.prefix(all, path, limitsOf(scope), spot)
      else if (how !== '@' || scope.uses.length > 0) {
        const own = scope.uses.map(({ args }) => args.join(' ')).join(', ')
        const what = `location ${how} ${path}: no route can say so; ${own === '' ? 'without a limit there' : `with ${own}`}`
        const kind = own === '' ? 'changed' : 'lost'
        this.#policy.note(spot, kind, what, 'Its requests meet the limits of their paths; write routes for them.')
      }
    }
  }

  /** The name of the limit that a `limit_req` is. */
  #limit(use: Directive, { status, isDryRun }: Omit<Scope, 'uses'>): string | undefined {
    const options = new Map(use.args.map((text) => [text.split('=')[0] ?? '', text.split('=')[1] ?? '']))
    const name = options.get('zone') ?? ''
    const lose = (what: string, advice: string) => this.#policy.note(use, 'lost', what, advice)
    if (!this.#zones.has(name))
      lose(`zone ${name} is in none of the files`, 'Name the file with its limit_req_zone too.')
    for (const option of options.keys()) {
      if (!['zone', 'burst', 'delay', 'nodelay'].includes(option)) lose(`${option}: not known here`, 'Look it up.')
    }
    const zone = this.#zones.get(name)
    if (zone === undefined) return undefined
    const burst = Number(options.get('burst') ?? 0)
    const delay = Number(options.get('delay') ?? 0)
    if (!Number.isSafeInteger(burst) || !Number.isSafeInteger(delay)) {
      this.#problems.push({ file: use.file, line: use.line, message: 'burst and delay must be whole numbers' })
      return undefined
    }
    const code = status?.args[0] ?? '503'
    if (code !== '429' && code !== '444') {
      const what = `refusals have status 429 instead of ${code}${status === undefined ? ", nginx's default" : ''}`
      this.#policy.note(status ?? zone, 'changed', what, 'Nothing, unless clients look at the status.')
    }
    const immediate = options.has('nodelay') ? burst : Math.min(burst, delay)
    const body = { zone, burst, immediate, isDryRun, isDropped: code === '444' }
    return this.#named(name, use, body)
  }

  #named(zoneName: string, use: Directive, want: Use): string {
    const variants = this.#names.get(zoneName) ?? new Map<string, string>()
    this.#names.set(zoneName, variants)
    const variant = JSON.stringify(want)
    const known = variants.get(variant)
    if (known !== undefined) return known
    if (variants.size > 0) {
      const what = `zone ${zoneName} counts all its uses together; this burst is a limit with a count of its own`
      this.#policy.note(use, 'changed', what, 'Write the same burst everywhere if one count was meant.')
    }
    const name = this.#policy.limit(zoneName, use, this.#body(use, want))
    variants.set(variant, name)
    return name
  }

  #body(use: Directive, { zone, burst, immediate, isDryRun, isDropped }: Use): JsonObject {
    const window = zone.unit === 's' ? 1_000 : 60_000
    const waiting = burst - immediate
    // One interval more than the last in the queue needs, so that no rounding refuses it.
    const delay = Math.ceil(((waiting + 1) * window) / zone.rate)
    if (waiting > 0 && !isDryRun) {
      if (isDropped)
        this.#policy.note(use, 'changed', 'refusals are answered with 429 instead of 444', 'Write nodelay.')
      if (delay > delayMsMax || waiting > queueMax) {
        const what = `${waiting} requests may wait ${durationText(delay)} there; here ${queueMax} for 60s at most`
        this.#policy.note(use, 'changed', what, 'Write nodelay if they need not wait.')
      }
      const what =
        'requests wait in the proxy of Weir, in a queue for each process; through forward-auth they are refused'
      this.#policy.note(zone, 'info', what, 'Nothing behind the proxy; else write nodelay.')
    }
    return {
      ...{ algorithm: 'token_bucket', size: zone.rate, window: durationText(window), burst: immediate + 1 },
      by: [...zone.by],
      ...(isDryRun ? { mode: 'shadow' } : {}),
      ...(waiting > 0 && !isDryRun
        ? { onExceed: { delay: durationText(Math.min(delay, delayMsMax)), queue: Math.min(waiting, queueMax) } }
        : isDropped && !isDryRun
          ? { onExceed: 'drop' }
          : {}),
    }
  }
}

interface Use {
  readonly zone: Zone
  readonly burst: number
  /** How many of the burst are served immediately. */
  readonly immediate: number
  readonly isDryRun: boolean
  /** Whether refusals close the connection: status 444. */
  readonly isDropped: boolean
}

function scopeOf(block: readonly Directive[], above: Scope): Scope {
  const own = block.filter(({ name }) => name === 'limit_req')
  const dryRun = block.find(({ name }) => name === 'limit_req_dry_run')
  return {
    uses: own.length > 0 ? own : above.uses,
    status: block.find(({ name }) => name === 'limit_req_status') ?? above.status,
    isDryRun: dryRun === undefined ? above.isDryRun : dryRun.args[0] === 'on',
  }
}

const isSameScope = (one: Scope, other: Scope) =>
  one.uses.length === other.uses.length &&
  one.uses.every((use, at) => use.args.join(' ') === other.uses[at]?.args.join(' ')) &&
  one.isDryRun === other.isDryRun

const spotOf = ({ file, line }: Spot): Spot => ({ file, line })

/** The locations of a server, nested ones too, and all other paths, if no location has them. */
function pathsOf(server: Directive, above: Scope): readonly Path[] {
  const scope = scopeOf(server.block ?? [], above)
  const found = locationsIn(server.block ?? [], scope)
  const hasRest = found.some(({ kind, path }) => path === '/' && (kind === '' || kind === '^~'))
  return hasRest ? found : [{ file: server.file, line: server.line, kind: '', path: '/', scope }, ...found]
}

function locationsIn(block: readonly Directive[], above: Scope): readonly Path[] {
  return block.flatMap((one) => {
    if (one.name !== 'location' || one.block === undefined) return []
    const [, kind = '', path = ''] = /^(=|\^~|~\*|~|@)?\s*(.*)$/s.exec(one.args.join(' ')) ?? []
    const scope = scopeOf(one.block, above)
    return [{ file: one.file, line: one.line, kind, path, scope }, ...locationsIn(one.block, scope)]
  })
}

/** What a variable of nginx is in `by`; undefined for one that is nothing there. */
function partOf(variable: string): string | undefined {
  const named = /^(http|arg|cookie)_(.+)$/.exec(variable)
  if (named?.[1] === 'http') return named[2] === 'cookie' ? undefined : byHeader(named[2]?.replaceAll('_', '-') ?? '')
  if (named !== null) return `${named[1] === 'arg' ? 'query' : 'cookie'}:${named[2]}`
  const plain: Readonly<Record<string, string>> = {
    ...{ binary_remote_addr: 'ip', remote_addr: 'ip', request_method: 'method', host: 'header:host' },
    server_name: 'global',
  }
  return plain[variable]
}
