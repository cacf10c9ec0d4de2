import type { JsonObject } from '@weir/policy/entities.ts'
import { parseSubjectId } from '@weir/policy/policy-values.ts'
import type { ForeignValue, ImportProblem, Spot } from './foreign-file.ts'
import { byHeader, durationText, HttpPolicy } from './http-policy.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import { type Fields, withoutConfigMaps, YamlConfig } from './yaml-config.ts'

/** A plugin with the names of what it is for; without any it is for everything. */
interface Plugin extends Spot {
  readonly name: string
  readonly config: Fields
  readonly yaml: YamlConfig
  readonly service: string
  readonly route: string
  readonly consumer: string
}

interface Route extends Spot {
  readonly names: readonly string[]
  readonly services: readonly string[]
  readonly paths: readonly string[]
  readonly methods: readonly string[]
}

const limiting = ['rate-limiting', 'rate-limiting-advanced']
const windows = { second: '1s', minute: '1m', hour: '1h', day: '1d', month: '30d', year: '365d' } as const
const units = Object.keys(windows) as (keyof typeof windows)[]
/** What says how counts are stored, and nothing of who is limited how. */
const ofStorage = /^(?:redis.*|sync_rate|strategy|policy|namespace|dictionary_name|lock_dictionary_name)$/
const known: Readonly<Record<string, readonly string[]>> = {
  'rate-limiting': [...units, 'limit_by', 'header_name', 'path', 'fault_tolerant'],
  'rate-limiting-advanced': [
    ...['limit', 'window_size', 'window_type', 'identifier', 'header_name', 'path', 'disable_penalty'],
    'retry_after_jitter_max',
  ],
}
const knownOfPlugin = [
  ...['name', 'id', 'instance_name', 'enabled', 'config', 'service', 'route', 'consumer', 'consumer_group'],
  ...['tags', 'protocols', 'ordering', 'partials', 'created_at', 'updated_at'],
]
const ofAnswers = ['hide_client_headers', 'error_code', 'error_message']
const authentication = [
  'key-auth',
  'key-auth-enc',
  'basic-auth',
  'jwt',
  'oauth2',
  'hmac-auth',
  'openid-connect',
  'ldap-auth',
]

/** Converts the plugins `rate-limiting` and `rate-limiting-advanced` of Kong's declarative configuration. */
export function importKong(files: readonly InputFile[]): ImportResult {
  const importing = new KongImport()
  for (const { name, text, linesBefore } of withoutConfigMaps(files))
    importing.read(new YamlConfig(name, linesBefore), text)
  return importing.result(files)
}

class KongImport {
  readonly #policy = new HttpPolicy()
  readonly #problems: ImportProblem[] = []
  readonly #yamls: YamlConfig[] = []
  readonly #plugins: Plugin[] = []
  readonly #routes: Route[] = []
  readonly #services: (readonly string[])[] = []
  readonly #names = new Map<Plugin, readonly string[]>()

  read(yaml: YamlConfig, text: string): void {
    this.#yamls.push(yaml)
    const root = yaml.file.open(text)
    const fields = root === undefined ? undefined : yaml.fields(root)
    if (fields === undefined || root === undefined) return
    if (!['_format_version', 'services', 'routes', 'plugins', 'consumers'].some((name) => fields.has(name)))
      yaml.file.problem(root, 'must be a declarative configuration of Kong: services, routes, plugins, consumers')
    for (const service of yaml.items(fields.get('services'))) {
      const own = yaml.fields(service)
      const names = namesOf(yaml, own, service)
      this.#services.push(names)
      this.#readPlugins(yaml, own, { service: names[0] })
      for (const route of yaml.items(own.get('routes'))) this.#readRoute(yaml, route, names)
    }
    for (const route of yaml.items(fields.get('routes'))) {
      const service = refOf(yaml, yaml.fields(route), 'service')
      this.#readRoute(yaml, route, service === '' ? [] : [service])
    }
    for (const consumer of yaml.items(fields.get('consumers'))) {
      const own = yaml.fields(consumer)
      this.#readPlugins(yaml, own, { consumer: namesOf(yaml, own, consumer)[0] })
    }
    for (const group of yaml.items(fields.get('consumer_groups'))) {
      const own = yaml.fields(group)
      for (const plugin of yaml.items(own.get('plugins')))
        this.#loseGroup(plugin, yaml.text(yaml.fields(plugin), 'name'))
    }
    this.#readPlugins(yaml, fields, {})
  }

  result(files: readonly InputFile[]): ImportResult {
    for (const route of this.#routes) this.#addRoute(route)
    const general = this.#limitsOf(this.#plugins.filter((one) => isGlobal(one)))
    const hasRoot = this.#routes.some(({ paths }) => paths.includes('/') || paths.length === 0)
    const [first] = this.#plugins
    if (first !== undefined && general.length > 0 && !hasRoot) this.#policy.prefix(['*'], '/', general, first)
    const sections = this.#consumers()
    for (const one of this.#plugins.filter((plugin) => !this.#names.has(plugin) && plugin.consumer === '')) {
      const what = `no route in the files has the limits of ${one.name} of ${one.route || one.service}`
      this.#policy.note(one, 'lost', what, 'Name the files with its routes too, unless others count instead.')
    }
    const problems = [...this.#problems, ...this.#yamls.flatMap(({ file }) => file.problems)]
    return problems.length > 0 ? { kind: 'problems', problems } : this.#policy.result(files, sections)
  }

  #readRoute(yaml: YamlConfig, value: ForeignValue, services: readonly string[]): void {
    const fields = yaml.fields(value)
    const names = namesOf(yaml, fields, value)
    this.#readPlugins(yaml, fields, { route: names[0] })
    for (const name of ['hosts', 'headers', 'snis', 'sources', 'destinations', 'expression']) {
      const field = fields.get(name)
      const isSet =
        field !== undefined && !['', '[]', '{}'].includes(JSON.stringify(field.node ?? '').replaceAll('null', ''))
      if (!isSet) continue
      const what = `${name} of route ${names[0]}: a route of Weir has a method and a path only`
      if (name === 'expression') this.#policy.note(field, 'lost', what, 'Write routes for the paths that it means.')
      else this.#policy.note(field, 'changed', what, 'Look whether another route has the same paths.')
    }
    const [paths, methods] = [yaml.texts(fields, 'paths'), yaml.texts(fields, 'methods')]
    if (!fields.has('expression')) this.#routes.push({ ...spotOf(value), names, services, paths, methods })
  }

  #readPlugins(
    yaml: YamlConfig,
    owner: Fields,
    own: { readonly [of in 'service' | 'route' | 'consumer']?: string | undefined },
  ): void {
    for (const value of yaml.items(owner.get('plugins'))) {
      const fields = yaml.fields(value)
      const name = yaml.text(fields, 'name')
      const lose = (what: string, advice: string) => this.#policy.note(value, 'lost', what, advice)
      if (authentication.includes(name)) {
        const what = `${name}: callers without a key are admitted here, as identity.anonymous says`
        this.#policy.note(value, 'changed', what, 'Make keys for the consumers, and take identity.anonymous out.')
      } else if (!limiting.includes(name) && /limit|throttl|protection|quota/.test(name)) {
        lose(`plugin ${name}: not known here`, 'Look up what it limits, and write that into the policy.')
      }
      if (!limiting.includes(name)) continue
      if (refOf(yaml, fields, 'consumer_group') !== '') this.#loseGroup(value, name)
      else if (!yaml.flag(fields, 'enabled', true))
        this.#policy.note(value, 'info', `${name} is not enabled`, 'Nothing.')
      else {
        for (const [key, field] of fields) {
          if (knownOfPlugin.includes(key)) continue
          const what = `${key} of plugin ${name}: not known here; the limit is for all that the plugin is for`
          this.#policy.note(field, 'lost', what, 'Look up what it does.')
        }
        const config = yaml.fields(fields.get('config'))
        const [service = '', route = '', consumer = ''] = (['service', 'route', 'consumer'] as const).map(
          (of) => own[of] ?? refOf(yaml, fields, of),
        )
        this.#plugins.push({ ...spotOf(value), name, config, yaml, service, route, consumer })
      }
    }
  }

  #loseGroup(spot: Spot, name: string): void {
    if (!limiting.includes(name)) return
    this.#policy.note(spot, 'lost', `${name} of a consumer group: not carried over`, 'Write a plan for its subjects.')
  }

  /** The most specific instance of each plugin counts, as in Kong. */
  #addRoute({ names, services: of, paths, methods, ...spot }: Route): void {
    const services = [...of, ...this.#services.filter((known) => known.some((name) => of.includes(name))).flat()]
    const limits = limiting.flatMap((name) => {
      const own = this.#plugins.filter((one) => one.name === name && one.consumer === '')
      const found =
        own.find(({ route }) => names.includes(route)) ??
        own.find(({ service, route }) => route === '' && services.includes(service)) ??
        own.find(isGlobal)
      return found === undefined ? [] : this.#limitsOf([found])
    })
    for (const path of paths.length === 0 ? ['/'] : paths) {
      if (path.startsWith('~')) {
        const what = `path ${path}: a route has no regular expressions; it had ${limits.join(', ') || 'no limit'}`
        this.#policy.note(spot, 'lost', what, 'Write routes for the paths that are meant.')
      } else this.#policy.prefix(methods.length === 0 ? ['*'] : methods, path, limits, spot)
    }
  }

  /** Plans of consumers with plugins of their own, which replace those of routes, and the consumers as subjects. */
  #consumers(): JsonObject {
    const own = Map.groupBy(
      this.#plugins.filter(({ consumer }) => consumer !== ''),
      ({ consumer }) => consumer,
    )
    const [plans, subjects]: [Record<string, JsonObject>, Record<string, JsonObject>] = [{}, {}]
    for (const [consumer, plugins] of own) {
      const whole = plugins.filter(({ service, route }) => service === '' && route === '')
      for (const one of plugins.filter((plugin) => !whole.includes(plugin))) {
        const what = `${one.name} of consumer ${consumer} on a service or route of its own`
        this.#policy.note(one, 'lost', what, 'Write it as a limit of the plan of that consumer.')
      }
      const [first] = whole
      if (first === undefined) continue
      const plan = `kong-${consumer.replaceAll(/[^\w.-]/g, '-')}`.slice(0, 64)
      if (parseSubjectId(consumer) === undefined || plan in plans) {
        this.#policy.note(first, 'lost', `no subject can be named ${consumer}`, 'Give it another name.')
        continue
      }
      plans[plan] = { limits: [...this.#limitsOf(whole)] }
      subjects[consumer] = { plan }
      const what = `consumer ${consumer} is a subject with a plan of its own, without a key`
      this.#policy.note(first, 'info', what, `Make one: weir keys create ${consumer}.`)
    }
    return Object.keys(plans).length === 0 ? {} : { plans, subjects }
  }

  #limitsOf(plugins: readonly Plugin[]): readonly string[] {
    return plugins.flatMap((plugin) => {
      const names = this.#names.get(plugin) ?? this.#limits(plugin)
      this.#names.set(plugin, names)
      return names
    })
  }

  #limits(plugin: Plugin): readonly string[] {
    const { name, config, yaml, consumer } = plugin
    this.#noteConfig(plugin)
    const by = this.#byOf(plugin)
    if (by === undefined) return []
    const target = plugin.route || plugin.service || consumer || 'all'
    const isFree = yaml.flag(config, 'fault_tolerant', true)
    // A consumer's plugin counts instead of those of services, routes and all.
    const replaced =
      consumer === '' ? [] : this.#limitsOf(this.#plugins.filter((one) => one.consumer === '' && one.name === name))
    const more = {
      ...{ by: [by], ...(name === 'rate-limiting' ? { onUnavailable: isFree ? 'allow' : 'deny' } : {}) },
      ...(replaced.length === 0 ? {} : { replaces: [...replaced] }),
    }
    const add = (unit: string, body: JsonObject) =>
      this.#policy.limit(`${target}.${unit}`, plugin, { ...body, ...more })
    if (name === 'rate-limiting-advanced') return this.#advanced(plugin).map(([unit, body]) => add(unit, body))
    if (!units.some((unit) => config.has(unit))) this.#policy.note(plugin, 'lost', `${name} has no limit`, 'Write one.')
    return units.flatMap((unit) => {
      const size = yaml.number(config, unit)
      if (size === undefined) return []
      const isCalendar = unit === 'month' && (by === 'subject' || by === 'key')
      if ((unit === 'month' && !isCalendar) || unit === 'year') {
        const what = `a ${unit} is ${windows[unit]} here, not one of the calendar`
        this.#policy.note(plugin, 'changed', what, 'Count by consumer for months of the calendar.')
      }
      const span: JsonObject = isCalendar ? { period: 'month' } : { window: windows[unit] }
      return add(unit, { algorithm: 'fixed_window', size, ...span })
    })
  }

  #advanced({ config, yaml, ...spot }: Plugin): readonly (readonly [string, JsonObject])[] {
    const numbers = (name: string) =>
      yaml.texts(config, name).map((text) => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN))
    const [sizes, seconds] = [numbers('limit'), numbers('window_size')]
    if (sizes.length === 0 || sizes.length !== seconds.length || [...sizes, ...seconds].some((one) => !(one > 0))) {
      const message = '`limit` and `window_size` must be lists of as many whole numbers'
      this.#problems.push({ file: spot.file, line: spot.line, message })
      return []
    }
    const isSliding = yaml.text(config, 'window_type') !== 'fixed'
    if (isSliding && !yaml.flag(config, 'disable_penalty', false)) {
      const what = 'refused requests count in a sliding window there; here they count nowhere'
      this.#policy.note(spot, 'changed', what, 'Nothing, unless clients that go on trying are to stay refused.')
    }
    return sizes.map((size, at) => {
      const window = durationText((seconds[at] ?? 1) * 1_000)
      const isLong = (seconds[at] ?? 0) > 86_400
      if (isSliding && isLong)
        this.#policy.note(spot, 'changed', `${window} is too long for a sliding window: it is a fixed one`, 'Nothing.')
      return [window, { algorithm: isSliding && !isLong ? 'sliding_window' : 'fixed_window', size, window }]
    })
  }

  #noteConfig({ config, yaml, name, ...spot }: Plugin): void {
    for (const [key, field] of config) {
      if (ofStorage.test(key) || ofAnswers.includes(key) || known[name]?.includes(key)) continue
      this.#policy.note(field, 'lost', `${key} of ${name}: not known here`, 'Look up what it does.')
    }
    const say = (key: string, what: string, advice: string) => {
      const field = config.get(key)
      if (field !== undefined && !['', 'false', '429'].includes(yaml.text(config, key)))
        this.#policy.note(field, 'changed', what, advice)
    }
    say('hide_client_headers', 'answers have RateLimit headers', 'WEIR_RATELIMIT_HEADERS chooses their form.')
    say('error_code', 'refusals have status 429', 'Nothing, unless clients look at the status.')
    say('error_message', 'refusals are problems by RFC 9457', 'Write `refusal` on the routes for another body.')
    const policy = yaml.text(config, 'policy') || yaml.text(config, 'strategy')
    if (policy === 'local' || (policy === '' && name === 'rate-limiting')) {
      const what = 'policy local counts in each node of Kong by itself; counts here are of all processes together'
      this.#policy.note(spot, 'changed', what, 'Multiply the size by the number of nodes if that was meant.')
    }
  }

  /** What a plugin counts apart; undefined, with a note, for what no limit does. */
  #byOf({ config, yaml, name, ...spot }: Plugin): string | undefined {
    const by = yaml.text(config, name === 'rate-limiting' ? 'limit_by' : 'identifier') || 'consumer'
    const header = yaml.text(config, 'header_name')
    if (by === 'consumer') return 'subject'
    if (by === 'ip') return 'ip'
    if (by === 'service' && (spot.service !== '' || spot.route !== '')) return 'global'
    // Callers without a key are counted by address there as here.
    if (by === 'credential') return 'key'
    if (by === 'header' && header !== '') {
      const what =
        byHeader(header) === 'key'
          ? `${header} carries a credential: it counts by API key, and Weir refuses keys that it does not know`
          : `requests without ${header} are counted together; there by address`
      this.#policy.note(spot, 'changed', what, 'Nothing, if all callers have one.')
      return byHeader(header)
    }
    this.#policy.note(spot, 'lost', `${name} by ${by}: no limit counts so; it is left out`, 'Count by consumer or ip.')
    return undefined
  }
}

const isGlobal = ({ service, route, consumer }: Plugin) => service === '' && route === '' && consumer === ''

const spotOf = ({ file, line }: Spot): Spot => ({ file, line })

/** The names by which others refer to an entity; the first is for people. */
function namesOf(yaml: YamlConfig, fields: Fields, { line }: Spot): readonly string[] {
  const names = ['name', 'username', 'custom_id', 'id'].map((name) => yaml.text(fields, name))
  return [...names.filter((text) => text !== ''), `line-${line}`]
}

/** A reference: a name, or a map with one. */
function refOf(yaml: YamlConfig, fields: Fields, name: string): string {
  const field = fields.get(name)
  if (field === undefined) return ''
  const isMap = typeof field.node === 'object' && field.node !== null && 'items' in field.node
  return isMap ? (namesOf(yaml, yaml.fields(field), field)[0] ?? '') : (yaml.file.text(field, name) ?? '')
}
