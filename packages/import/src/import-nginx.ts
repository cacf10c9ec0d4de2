import type { Spot } from './foreign-file.ts'
import { durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import { type Directive, readNginxFiles } from './nginx-file.ts'

/** A `limit_req_zone` whose key a policy can count by. */
type Zone = Spot & { readonly by: readonly string[]; readonly size: number; readonly windowMs: number }

/** The limits of a level of the configuration, its own or else those of the level above, and the status of refusals. */
type Scope = { readonly uses: readonly Directive[]; readonly status: Directive | undefined }

/** `kind` is `=`, `^~`, `~`, `~*`, `@`, or empty for any path that begins so. */
type Location = Spot & Scope & { readonly kind: string; readonly path: string }

/** Longer waits, and longer queues, a policy does not have. */
const [delayMsMax, queueMax] = [60_000, 10_000]
/** What `by` is at most. */
const partsMax = 8
/** Files of distributions in which nothing is limited. */
const harmless = /(?:^|\/)(?:mime\.types|(?:fastcgi|uwsgi|scgi|proxy)_params|fastcgi\.conf)$/
const isKnown = /^limit_(?:req|req_zone|req_status|req_log_level|except)$/
const parts = new Map(
  Object.entries({ remote_addr: 'ip', request_method: 'method', host: 'header:host', server_name: 'global' }),
)

/** Converts `limit_req` of nginx to limits, and the locations that they are in to routes. */
export const importNginx = (files: readonly InputFile[]): ImportResult => new NginxImport(files).run()

class NginxImport extends HttpPolicy {
  /** Undefined for one that no limit counts like. */
  readonly #zones = new Map<string, Zone | undefined>()
  /** The names of limits by the arguments of `limit_req`. */
  readonly #names = new Map<string, string>()
  readonly #used = new Set<string>()

  run(): ImportResult {
    const { directives, problems } = readNginxFiles(this.files)
    for (const one of problems) this.problem(one, one.message)
    for (const one of directives) {
      this.#nameOthers(one)
      if (one.name === 'location')
        this.lost(one, `location ${one.args.join(' ')} is in no server`, 'Name the file that includes it.')
    }
    // A file of `conf.d` has what is in `http`, without it.
    const http = directives.flatMap((one) => (one.name === 'http' ? (one.block ?? []) : one))
    for (const one of http) if (one.name === 'limit_req_zone') this.#readZone(one)
    const top = scopeOf(http, { uses: [], status: undefined })
    const servers = http.filter(({ name, block }) => name === 'server' && block !== undefined)
    const [use] = top.uses
    if (servers.length === 0 && use !== undefined) servers.push({ ...use, name: 'server', block: [] })
    const [first] = servers.filter((one) => this.#addServer(one, top))
    const others = servers.filter((one) => one !== first && !one.block?.some(({ name }) => name === 'return'))
    if (first !== undefined) for (const one of others) this.anyHost(one)
    for (const [name, zone] of this.#zones)
      if (zone !== undefined && !this.#used.has(name))
        this.info(zone, `no limit_req in the files has zone ${name}`, 'Name the files that use it, if any.')
    return this.result()
  }

  /** Names everything else that limits requests, or may. */
  #nameOthers({ name, args, block, ...spot }: Directive): void {
    const isUnread = name === 'include' && !harmless.test(args[0] ?? '')
    const mayLimit = /^limit_|_by_lua/.test(name) && !isKnown.test(name)
    const why = isUnread ? 'this file is not read' : 'not known here'
    if (isUnread || mayLimit) this.lost(spot, `${[name, ...args].join(' ').slice(0, 100)}: ${why}`)
    for (const one of block ?? []) this.#nameOthers(one)
  }

  #readZone({ args: [key = '', ...options], ...spot }: Directive): void {
    const text = options.join(' ')
    const name = /(?<!\S)zone=([^:\s]+):/.exec(text)?.[1]
    const [, count, unit] = /(?<!\S)rate=(\d{1,9})r\/([sm])(?!\S)/.exec(text) ?? []
    const size = Number(count)
    if (name === undefined || !(size > 0)) {
      this.problem(spot, 'limit_req_zone must have a key, zone=NAME:SIZE and rate=Nr/s or Nr/m')
      return
    }
    for (const one of options.filter((option) => !/^(?:zone=|rate=|sync$)/.test(option)))
      this.lost(spot, `${one} of zone ${name}: not known here`)
    const by = this.#byOf(key, spot)
    const { file, line } = spot
    this.#zones.set(name, by && { file, line, by, size, windowMs: unit === 's' ? 1_000 : 60_000 })
    if (unit === 'm' && (size * 1_000) % 60 > 0)
      this.changed(spot, `nginx rounds ${size}r/m down to thousandths per second; Weir does not round`)
  }

  /** What a key counts apart; undefined, with a note, for a key that no limit counts by. */
  #byOf(key: string, spot: Spot): readonly string[] | undefined {
    const variables = [...key.matchAll(/\$\{?(\w+)\}?/g)].map(([, variable = '']) => variable)
    const all = variables.map((variable) => this.#partOf(variable, spot))
    const apart = [...new Set(all.filter((part) => part !== 'global'))]
    const unknown = variables.filter((_, at) => all[at] === undefined).map((variable) => `$${variable}`)
    if (unknown.length > 0 || apart.length > partsMax) {
      const what = `no limit counts by ${unknown.join(' and ') || `${apart.length} things`}; the zone is left out`
      this.lost(spot, what, 'Write a limit by subject, ip, header or query instead.')
      return undefined
    }
    const isAlways = apart.length === 0 || apart.some((part) => part === 'ip' || part === 'method')
    if (!isAlways) this.changed(spot, `requests without ${key} are counted together; nginx does not count them`)
    if (apart.includes('header:host')) this.changed(spot, 'the Host header is counted as sent, including its port')
    return apart.length === 0 ? ['global'] : apart.filter((part) => part !== undefined)
  }

  /** What a variable of nginx is in `by`; undefined for one that is nothing there. */
  #partOf(variable: string, spot: Spot): string | undefined {
    const [, kind = '', name = ''] = /^(http|arg|cookie)_(.+)$/.exec(variable) ?? []
    if (kind === 'http') return name === 'cookie' ? undefined : this.byHeader(spot, name.replaceAll('_', '-'))
    if (kind !== '') return `${kind === 'arg' ? 'query' : 'cookie'}:${name}`
    return parts.get(variable.replace('binary_', ''))
  }

  /** Adds the routes of a server that limits something. Returns whether it does. */
  #addServer(server: Directive, top: Scope): boolean {
    const scope = scopeOf(server.block ?? [], top)
    const found = locationsIn(server.block ?? [], scope)
    const hasRest = found.some(({ kind, path }) => path === '/' && (kind === '' || kind === '^~'))
    const all = hasRest ? found : [{ file: server.file, line: server.line, kind: '', path: '/', ...scope }, ...found]
    if (!all.some(({ uses }) => uses.length > 0)) return false
    const limitsOf = ({ uses, status }: Scope) => uses.flatMap((use) => this.#limit(use, status) ?? [])
    const paths = all.map((one) => ({ ...one, limits: limitsOf(one) }))
    const isSame = new Set(paths.map(({ limits }) => limits.join())).size === 1
    for (const { kind, path, limits, ...spot } of isSame ? paths.slice(0, 1) : paths) {
      if (kind === '' || kind === '^~' || isSame) this.route(spot, isSame ? '/' : path, limits)
      else if (kind === '=') this.route(spot, path, limits, [], true)
      else if (kind !== '@' || limits.length > 0) this.route(spot, `location ${kind} ${path}`, limits)
    }
    return true
  }

  /** The name of the limit that a `limit_req` is. */
  #limit(use: Directive, status: Directive | undefined): string | undefined {
    const args = use.args.toSorted().join(' ')
    const options = new Map(use.args.map((text) => [text.split('=')[0] ?? '', text.split('=')[1]]))
    const name = options.get('zone') ?? ''
    const zone = this.#zones.get(name)
    const code = status?.args[0] ?? "503, nginx's default"
    if (zone !== undefined && code !== '429')
      this.changed(status ?? zone, `refusals have status 429 instead of ${code}`)
    const known = this.#names.get(args)
    if (known !== undefined) return known
    for (const option of options.keys())
      if (!['zone', 'burst', 'delay', 'nodelay'].includes(option))
        this.lost(use, `${option} of limit_req: not known here`)
    if (!this.#zones.has(name)) this.lost(use, `zone ${name} is not in the files`)
    if (zone === undefined) return undefined
    const [burst, delay] = [Number(options.get('burst') ?? 0), Number(options.get('delay') ?? 0)]
    if (!Number.isSafeInteger(burst) || !Number.isSafeInteger(delay))
      return this.problem(use, 'burst and delay must be whole numbers')
    if (this.#used.has(name)) {
      const what = `zone ${name} has one count for all uses; this burst becomes a limit with its own count`
      this.changed(use, what, 'If you meant one count, write the same burst everywhere.')
    }
    this.#used.add(name)
    const immediate = options.has('nodelay') ? burst : Math.min(burst, delay)
    const bucket = { algorithm: 'token_bucket', size: zone.size, window: durationText(zone.windowMs) }
    const onExceed = this.#waiting(use, burst - immediate, zone)
    const limit = this.limit(name, use, { ...bucket, burst: immediate + 1, by: [...zone.by], ...onExceed })
    this.#names.set(args, limit)
    return limit
  }

  #waiting(use: Spot, count: number, { size, windowMs }: Zone) {
    if (count === 0) return {}
    // One interval more than the last in the queue needs, so that no rounding refuses it.
    const ms = Math.ceil(((count + 1) * windowMs) / size)
    const [delay, queue] = [durationText(Math.min(ms, delayMsMax)), Math.min(count, queueMax)]
    const there = `${count} requests may wait ${durationText(ms)} there; ${queue} up to ${delay} in the proxy of Weir`
    this.changed(use, `${there}, in each process, and none at forward-auth`, 'Use nodelay if requests should not wait.')
    return { onExceed: { delay, queue } }
  }
}

function scopeOf(block: readonly Directive[], above: Scope): Scope {
  const own = block.filter(({ name }) => name === 'limit_req')
  const status = block.find(({ name }) => name === 'limit_req_status')
  return { uses: own.length > 0 ? own : above.uses, status: status ?? above.status }
}

/** The locations of a block, nested ones too. */
function locationsIn(block: readonly Directive[], above: Scope): readonly Location[] {
  return block.flatMap((one) => {
    if (one.name !== 'location' || one.block === undefined) return []
    const [, kind = '', path = ''] = /^(=|\^~|~\*|~|@)?\s*(.*)$/s.exec(one.args.join(' ')) ?? []
    const scope = scopeOf(one.block, above)
    return [{ file: one.file, line: one.line, kind, path, ...scope }, ...locationsIn(one.block, scope)]
  })
}
