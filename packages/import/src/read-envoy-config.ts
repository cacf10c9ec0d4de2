import {
  type EnvoyConfig,
  type EnvoyDescriptor,
  type EnvoyLimit,
  type EnvoyUnit,
  windowOfUnit,
} from './envoy-config.ts'
import type { ImportProblem, Spot } from './foreign-file.ts'
import type { ImportNote } from './imported-policy.ts'
import { Entry, type YamlFile } from './yaml-config.ts'

/** What a file says, with what is wrong with it; one of them is empty. */
export interface ReadConfig {
  readonly config: EnvoyConfig | undefined
  readonly problems: readonly ImportProblem[]
  readonly notes: readonly ImportNote[]
}

/** A route for every descriptor is the least that becomes of them, and a policy has at most this many. */
const descriptorsMax = 10_000
/** Envoy asks with a handful of entries; a cycle of aliases ends here. */
const depthMax = 32
/** It is a 32-bit number there. */
const requestsMax = 4_294_967_295

const knownInDescriptor = [
  ...['key', 'value', 'rate_limit', 'descriptors', 'shadow_mode', 'detailed_metric'],
  ...['value_to_metric', 'share_threshold', 'quota_mode', 'metadata'],
]
const knownInLimit = ['unit', 'requests_per_unit', 'unlimited', 'name', 'replaces']

/** Reads a configuration file of `envoyproxy/ratelimit`. What its server refuses to load is a problem here too. */
export function readEnvoyConfig(file: YamlFile): ReadConfig {
  return new ConfigReader().read(file)
}

class ConfigReader {
  readonly #notes: ImportNote[] = []
  #count = 0

  read({ file, documents }: YamlFile): ReadConfig {
    const [root, second] = documents
    second?.problem('is not valid YAML: a configuration is one document; another begins here')
    const config = root === undefined ? undefined : this.#config(new Entry(file, root, rootIs))
    const { problems } = file
    return { config: problems.length > 0 ? undefined : config, problems, notes: this.#notes }
  }

  #config(root: Entry): EnvoyConfig {
    this.#noteUnknown(root, ['domain', 'descriptors'])
    const domain = root.text('domain')
    if (root.isMap && domain === '') root.problem('needs a `domain` that is not empty')
    return { file: root.file, line: root.line, domain, descriptors: this.#descriptors(root, 1) }
  }

  #descriptors(parent: Entry, depth: number): readonly EnvoyDescriptor[] {
    const field = parent.at('descriptors')
    if (field.isEmpty) return []
    if (depth > depthMax) return field.problem(`is nested deeper than ${depthMax} descriptors`) ?? []
    const items = parent.items('descriptors', 'a list of descriptors', 'a descriptor: a map with a `key`')
    return items.flatMap((item) => this.#descriptor(item, depth) ?? [])
  }

  #descriptor(item: Entry, depth: number): EnvoyDescriptor | undefined {
    this.#count += 1
    if (this.#count === descriptorsMax + 1)
      item.problem(`is descriptor ${this.#count}; a policy has at most ${descriptorsMax} routes`)
    if (this.#count > descriptorsMax) return undefined
    this.#noteUnknown(item, knownInDescriptor)
    const [key, value] = [item.text('key'), item.text('value')]
    if (item.isMap && key === '') item.problem('needs a `key` that is not empty')
    const limit = this.#limit(
      item.at('rate_limit', 'a rate limit: `unit` and `requests_per_unit`, or `unlimited: true`'),
    )
    const isShadow = item.flag('shadow_mode') || item.flag('quota_mode')
    this.#noteFlags(item, limit)
    if (item.fields.has('metadata')) {
      const what = 'metadata: answers to Envoy carry no metadata'
      const advice = 'Nothing, unless a filter behind it reads them: they change no decision.'
      this.#note(item.at('metadata'), 'changed', what, advice)
    }
    const isShared = item.flag('share_threshold') && value.endsWith('*')
    const descriptors = this.#descriptors(item, depth + 1)
    return { file: item.file, line: item.line, key, value, limit, isShadow, isShared, descriptors }
  }

  #limit(entry: Entry): EnvoyLimit | undefined {
    if (entry.isEmpty) return undefined
    this.#noteUnknown(entry, knownInLimit)
    const name = entry.text('name')
    const unlimited = entry.flag('unlimited')
    const unit = this.#unit(entry, unlimited)
    const requests = entry.number('requests_per_unit', requestsMax)
    if (requests === undefined && !unlimited) {
      const what = 'without `requests_per_unit` nothing is admitted, as before'
      this.#note(entry, 'info', what, 'Write a number if that was not meant.')
    }
    const per = unlimited || unit === undefined ? undefined : { unit, requests: requests ?? 0 }
    return { file: entry.file, line: entry.line, name, per, replaces: this.#replaces(entry, name) }
  }

  #unit(limit: Entry, unlimited: boolean): EnvoyUnit | undefined {
    const text = limit.text('unit').toLowerCase()
    const unit = unitNames.find((one) => one === text)
    const at = limit.at('unit')
    if (unlimited && unit !== undefined) at.problem('has a `unit` beside `unlimited`; a limit has one of them')
    if (limit.isMap && !unlimited && unit === undefined)
      at.problem(`the unit must be one of ${unitNames.join(', ')}, but is ${text === '' ? 'missing' : text}`)
    return unit
  }

  #replaces(limit: Entry, own: string): readonly string[] {
    const items = limit.items('replaces', 'a list of maps with a `name`', 'a map with the `name` of a limit')
    return items.map((item) => {
      this.#noteUnknown(item, ['name'])
      const name = item.text('name')
      if (item.isMap && name === '') item.problem('needs the `name` of a limit')
      if (name !== '' && name === own) item.problem('a limit cannot replace itself')
      return name
    })
  }

  #noteFlags(item: Entry, limit: EnvoyLimit | undefined): void {
    const records = 'every decision is recorded with its descriptor, so there is nothing to turn on'
    const ask = 'Ask the usage API, or ClickHouse.'
    const isShareless = !item.text('value').endsWith('*')
    const notes: readonly (readonly [flag: string, kind: ImportNote['kind'], what: string, advice: string])[] = [
      ['detailed_metric', 'info', `: ${records}`, ask],
      ['value_to_metric', 'info', `: ${records}`, ask],
      [
        'quota_mode',
        'changed',
        ' became `mode: shadow`: what is exceeded is recorded and not refused',
        'Nothing tells Envoy which quota it was; read that from the records.',
      ],
      ...(isShareless ? [meansNothing('share_threshold', 'a value that ends in `*`')] : []),
      ...(limit === undefined ? [meansNothing('shadow_mode', 'a rate_limit')] : []),
    ]
    for (const [flag, kind, what, advice] of notes)
      if (item.flag(flag)) this.#note(item.at(flag), kind, `${flag}${what}`, advice)
  }

  #noteUnknown({ fields }: Entry, known: readonly string[]): void {
    const advice = 'Look it up in the documentation of the version you run, and write what it does into the policy.'
    for (const [name, field] of fields)
      if (!known.includes(name)) this.#note(field, 'lost', `${name}: this key is not known here`, advice)
  }

  #note({ file, line }: Spot, kind: ImportNote['kind'], what: string, advice: string): void {
    this.#notes.push({ file, line, kind, what, advice })
  }
}

const rootIs = 'a configuration of envoyproxy/ratelimit: `domain` and `descriptors`'

const meansNothing = (flag: string, missing: string) =>
  [flag, 'info', ` without ${missing} means nothing`, 'Leave it out.'] as const

const unitNames = Object.keys(windowOfUnit) as readonly EnvoyUnit[]
