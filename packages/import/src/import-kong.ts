import type { JsonObject } from '@weir/policy/entities.ts'
import { parseSubjectId } from '@weir/policy/policy-values.ts'
import { durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import type { Entry } from './yaml-config.ts'

/** What a plugin is for, by names; without any it is for everything. */
type Target = Readonly<Record<'service' | 'route' | 'consumer', string>>
type Plugin = Target & { readonly entry: Entry; readonly name: string }
type Route = Omit<Target, 'consumer'> & { readonly entry: Entry; readonly paths: readonly string[] }

const limiting = ['rate-limiting', 'rate-limiting-advanced']
const windows = { second: '1s', minute: '1m', hour: '1h', day: '1d', month: '30d', year: '365d' } as const
/** A sliding window is no longer. */
const slidingSecondsMax = 86_400
const sections = ['_format_version', 'services', 'routes', 'plugins', 'consumers']
const ofPlugin =
  /^(?:name|id|instance_name|enabled|config|service|route|consumer|tags|protocols|ordering|created_at|updated_at)$/
/** What says who is limited how, how counts are stored and how refusals look. */
const ofConfig = new RegExp(
  `^(?:${Object.keys(windows).join('|')}|limit_by|identifier|limit|window_size|window_type|header_name|path|fault_tolerant|` +
    'disable_penalty|retry_after_jitter_max|redis.*|sync_rate|strategy|policy|namespace|(?:lock_)?dictionary_name|' +
    'hide_client_headers|error_code|error_message)$',
)
const authentication = /^(?:key-auth(?:-enc)?|basic-auth|jwt|oauth2|hmac-auth|openid-connect|ldap-auth)$/
const ofHosts = /^(?:hosts|headers|snis|sources|destinations)$/
const otherLimits = /limit|throttl|protection|quota/

/** Converts the plugins `rate-limiting` and `rate-limiting-advanced` of Kong's declarative configuration. */
export const importKong = (files: readonly InputFile[]): ImportResult => new KongImport(files).run()

class KongImport extends HttpPolicy {
  /** The consumers with limits of their own, and their plans. */
  readonly #plans: Record<string, JsonObject> = {}
  readonly #subjects: Record<string, JsonObject> = {}
  readonly #plugins: Plugin[] = []
  readonly #routes: Route[] = []
  /** The first name of each entity by its others, with its kind in front. */
  readonly #aliases = new Map<string, string>()
  readonly #names = new Map<Plugin, readonly string[]>()

  #read(root: Entry): void {
    if (!sections.some((name) => root.fields.has(name)))
      root.problem('must be a declarative Kong configuration: services, routes, plugins, consumers')
    for (const one of root.items('services')) {
      const service = this.#nameOf(one, 'service')
      this.#readPlugins(one, { service })
      for (const route of one.items('routes')) this.#readRoute(route, service)
    }
    for (const one of root.items('routes')) this.#readRoute(one, this.#refOf(one, 'service'))
    for (const one of root.items('consumers')) this.#readPlugins(one, { consumer: this.#nameOf(one, 'consumer') })
    this.#readPlugins(root, {})
  }

  /** The name of an entity, which its other names are known as too. */
  #nameOf(entry: Entry, kind: keyof Target): string {
    const names = ['name', 'username', 'custom_id', 'id'].map((name) => entry.text(name)).filter((name) => name !== '')
    const [first = `line-${entry.line}`] = names
    for (const name of names) this.#aliases.set(`${kind} ${name}`, first)
    return first
  }

  /** A reference, by a name or a map with one; empty for none. */
  #refOf(entry: Entry, kind: keyof Target): string {
    const field = entry.at(kind)
    const name = field.isMap ? field.text('name') || field.text('username') || field.text('id') : field.asText(kind)
    return this.#aliases.get(`${kind} ${name}`) ?? name
  }

  run(): ImportResult {
    for (const document of this.documents()) this.#read(document)
    for (const route of this.#routes) this.#addRoute(route)
    const general = this.#plugins.filter((one) => isGlobal(one))
    const paths = this.#routes.flatMap((route) => route.paths)
    const [first] = general
    if (first !== undefined && !paths.includes('/')) this.route(first.entry, '/', this.#limitsOf(general))
    const own = this.#plugins.filter(({ consumer }) => consumer !== '')
    for (const [consumer, plugins] of Map.groupBy(own, (one) => one.consumer)) this.#addConsumer(consumer, plugins)
    for (const one of this.#plugins.filter((plugin) => !this.#names.has(plugin) && plugin.consumer === '')) {
      const what = `no route in the files has the limits of ${one.name} of ${targetOf(one)}`
      this.lost(one.entry, what, 'Also name the files with its routes, unless other limits apply.')
    }
    this.nameRest(/^plugins$/)
    return this.result(this.#plans, this.#subjects)
  }

  #readRoute(entry: Entry, service: string): void {
    const route = this.#nameOf(entry, 'route')
    this.#readPlugins(entry, { route })
    for (const [name, field] of entry.entries()) {
      if (name === 'expression')
        this.lost(field, `expression of route ${route}: a route of Weir has a method and a path`)
      if (ofHosts.test(name) && !['[]', '{}'].includes(String(field.node))) this.anyHost(field)
    }
    const paths = entry.texts('paths')
    if (entry.at('expression').isEmpty)
      this.#routes.push({ entry, route, service, paths: paths.length === 0 ? ['/'] : paths })
  }

  #readPlugins(owner: Entry, own: Partial<Target>): void {
    this.done(owner.at('plugins'))
    for (const entry of owner.items('plugins')) {
      const name = entry.text('name')
      const odd = entry.entries().flatMap(([key]) => (ofPlugin.test(key) ? [] : key))
      if (authentication.test(name)) {
        const what = `${name}: identity.anonymous allows callers without a key`
        this.changed(entry, what, 'Create keys for the consumers, and remove identity.anonymous.')
      } else if (!otherLimits.test(name)) continue
      else if (!entry.flag('enabled', true)) this.info(entry, `${name} is not enabled`)
      else if (!limiting.includes(name)) this.lost(entry, `plugin ${name}: not known here`)
      else if (odd.length > 0) this.lost(entry, `${name} with ${odd.join()}: not known here`)
      else {
        const target = (of: keyof Target) => own[of] ?? this.#refOf(entry, of)
        const [service, route, consumer] = [target('service'), target('route'), target('consumer')]
        this.#plugins.push({ entry, name, service, route, consumer })
      }
    }
  }

  /** The most specific instance of each plugin counts, as in Kong. */
  #addRoute({ entry, paths, ...of }: Route): void {
    const found = limiting.flatMap((name) => {
      const own = this.#plugins.filter((one) => one.name === name && one.consumer === '')
      const ofRoute = own.find(({ route }) => route === of.route)
      const ofService = own.find(({ service, route }) => route === '' && service !== '' && service === of.service)
      return ofRoute ?? ofService ?? own.find(isGlobal) ?? []
    })
    const limits = this.#limitsOf(found)
    for (const path of paths) this.route(entry, path, limits, entry.texts('methods'))
  }

  /** Adds a consumer with plugins of its own as a subject with a plan, which replace those of routes. */
  #addConsumer(consumer: string, plugins: readonly Plugin[]): void {
    const whole = plugins.filter(({ service, route }) => service === '' && route === '')
    const plan = `kong-${consumer.replaceAll(/[^\w.-]/g, '-')}`.slice(0, 64)
    const isPossible = parseSubjectId(consumer) !== undefined && !(plan in this.#plans)
    for (const { entry, name } of plugins.filter((one) => !isPossible || !whole.includes(one)))
      this.lost(entry, `${name} of consumer ${consumer}: a plan cannot have such a limit`, 'Write a plan for it.')
    const [first] = whole
    if (first === undefined || !isPossible) return
    this.#plans[plan] = { limits: [...this.#limitsOf(whole)] }
    this.#subjects[consumer] = { plan }
    const what = `consumer ${consumer} becomes a subject with its own plan, without a key`
    this.info(first.entry, what, `Create one: weir keys create ${consumer}.`)
  }

  #limitsOf(plugins: readonly Plugin[]): readonly string[] {
    return plugins.flatMap((plugin) => {
      const names = this.#names.get(plugin) ?? this.#limits(plugin)
      this.#names.set(plugin, names)
      return names
    })
  }

  #limits(plugin: Plugin): readonly string[] {
    const { name, entry, consumer } = plugin
    const config = entry.at('config')
    this.nameUnknown(config.fields, ofConfig, name)
    const policy = config.text('policy') || config.text('strategy')
    const what = 'policy local counts separately in each Kong node; Weir counts across all processes'
    if (policy === 'local' || (policy === '' && name === 'rate-limiting'))
      this.changed(entry, what, 'If intended, multiply the size by the number of nodes.')
    const by = this.#byOf(plugin, config)
    if (by === undefined) return []
    const spans = name === 'rate-limiting' ? this.#spans(entry, config) : this.#advancedSpans(entry, config)
    // A consumer's plugin counts instead of those of services, routes and all.
    const replaced = consumer === '' ? [] : this.#plugins.filter((one) => one.consumer === '' && one.name === name)
    const replaces = this.#limitsOf(replaced)
    const isFree = config.flag('fault_tolerant', true)
    return spans.map(([span, body]) =>
      this.limit(`${targetOf(plugin)}.${span}`, entry, {
        ...body,
        by: [by],
        ...(name === 'rate-limiting' ? { onUnavailable: isFree ? 'allow' : 'deny' } : {}),
        ...(replaces.length === 0 ? {} : { replaces: [...replaces] }),
      }),
    )
  }

  #spans(spot: Entry, config: Entry): readonly (readonly [span: string, body: JsonObject])[] {
    const spans = Object.entries(windows).flatMap(([unit, window]) => {
      const size = config.number(unit)
      if (size === undefined) return []
      if (unit === 'month' || unit === 'year') this.changed(spot, `a ${unit} is ${window} here, not a calendar period`)
      return [[unit, { algorithm: 'fixed_window', size, window }] as const]
    })
    if (spans.length === 0) this.lost(spot, 'a plugin without a limit', 'Write one.')
    return spans
  }

  #advancedSpans(spot: Entry, config: Entry): readonly (readonly [span: string, body: JsonObject])[] {
    const [sizes = [], seconds = []] = ['limit', 'window_size'].map((name) =>
      config.texts(name).map((text) => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN)),
    )
    if (sizes.length === 0 || sizes.length !== seconds.length || [...sizes, ...seconds].some((one) => !(one > 0)))
      return spot.problem('`limit` and `window_size` must be lists of whole numbers of the same length') ?? []
    const isSliding = config.text('window_type') !== 'fixed'
    if (isSliding) this.changed(spot, 'refused requests do not count in a sliding window, as with disable_penalty')
    return sizes.map((size, at) => {
      const window = durationText((seconds[at] ?? 1) * 1_000)
      const isLong = (seconds[at] ?? 0) > slidingSecondsMax
      if (isSliding && isLong) this.changed(spot, `${window} is too long for a sliding window: the window is fixed`)
      return [window, { algorithm: isSliding && !isLong ? 'sliding_window' : 'fixed_window', size, window }]
    })
  }

  /** What a plugin counts apart; undefined, with a note, for what no limit does. */
  #byOf({ entry, name, service, route }: Plugin, config: Entry): string | undefined {
    const by = config.text(name === 'rate-limiting' ? 'limit_by' : 'identifier') || 'consumer'
    const header = config.text('header_name')
    if (by === 'service' && (service !== '' || route !== '')) return 'global'
    if (by === 'header' && header !== '') {
      this.changed(entry, `requests without ${header} are counted together; there by address`)
      return this.byHeader(entry, header)
    }
    // Callers without a key are counted by address there as here.
    const known = by === 'consumer' ? 'subject' : by === 'credential' ? 'key' : by === 'ip' ? by : undefined
    if (known === undefined) this.lost(entry, `${name} by ${by}: Weir cannot count by this; it is left out`)
    return known
  }
}

const targetOf = ({ service, route, consumer }: Target) => route || service || consumer || 'all'

const isGlobal = ({ service, route, consumer }: Target) => service === '' && route === '' && consumer === ''
