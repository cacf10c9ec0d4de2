import {
  type EnvoyConfig,
  type EnvoyDescriptor,
  type EnvoyLimit,
  type EnvoyUnit,
  windowOfUnit,
} from './envoy-config.ts'
import { ForeignFile, type ForeignValue, type ImportProblem, isEmpty } from './foreign-file.ts'
import type { ImportNote } from './imported-policy.ts'

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

type Fields = ReadonlyMap<string, ForeignValue>

/** Reads a configuration file of `envoyproxy/ratelimit`. What its server refuses to load is a problem here too. */
export function readEnvoyConfig(text: string, file: string, linesBefore = 0): ReadConfig {
  return new ConfigReader(file, linesBefore).read(text)
}

class ConfigReader {
  readonly #file: ForeignFile
  readonly #notes: ImportNote[] = []
  #count = 0

  constructor(file: string, linesBefore: number) {
    this.#file = new ForeignFile(file, linesBefore)
  }

  read(text: string): ReadConfig {
    const root = this.#file.open(text)
    const config = root === undefined ? undefined : this.#config(root)
    const { problems } = this.#file
    return { config: problems.length > 0 ? undefined : config, problems, notes: this.#notes }
  }

  #config(root: ForeignValue): EnvoyConfig | undefined {
    const fields = this.#file.map(root, 'a configuration of envoyproxy/ratelimit: `domain` and `descriptors`')
    if (fields === undefined) return undefined
    this.#noteUnknown(fields, ['domain', 'descriptors'])
    const domain = this.#text(fields, 'domain')
    if (domain === '') this.#file.problem(root, 'needs a `domain` that is not empty')
    return { file: root.file, line: root.line, domain, descriptors: this.#descriptors(fields, 1) }
  }

  #descriptors(fields: Fields, depth: number): readonly EnvoyDescriptor[] {
    const field = fields.get('descriptors')
    if (field === undefined || isEmpty(field)) return []
    if (depth > depthMax) return this.#file.problem(field, `is nested deeper than ${depthMax} descriptors`) ?? []
    const items = this.#file.list(field, 'a list of descriptors') ?? []
    return items.flatMap((item) => this.#descriptor(item, depth) ?? [])
  }

  #descriptor(item: ForeignValue, depth: number): EnvoyDescriptor | undefined {
    this.#count += 1
    if (this.#count === descriptorsMax + 1)
      this.#file.problem(item, `is descriptor ${this.#count}; a policy has at most ${descriptorsMax} routes`)
    if (this.#count > descriptorsMax) return undefined
    const fields = this.#file.map(item, 'a descriptor: a map with a `key`')
    if (fields === undefined) return undefined
    this.#noteUnknown(fields, knownInDescriptor)
    const [key, value] = [this.#text(fields, 'key'), this.#text(fields, 'value')]
    if (key === '') this.#file.problem(item, 'needs a `key` that is not empty')
    const limit = this.#limit(fields.get('rate_limit'))
    const isQuota = this.#flag(fields, 'quota_mode')
    const isShadow = this.#flag(fields, 'shadow_mode')
    this.#noteFlags(fields, limit)
    const metadata = fields.get('metadata')
    if (metadata !== undefined) {
      const what = 'metadata: answers to Envoy carry no metadata'
      this.#note(metadata, 'changed', what, 'Nothing, unless a filter behind it reads them: they change no decision.')
    }
    return {
      ...{ file: item.file, line: item.line, key, value, limit },
      isShadow: isShadow || isQuota,
      isShared: this.#flag(fields, 'share_threshold') && value.endsWith('*'),
      descriptors: this.#descriptors(fields, depth + 1),
    }
  }

  #limit(field: ForeignValue | undefined): EnvoyLimit | undefined {
    if (field === undefined || isEmpty(field)) return undefined
    const fields = this.#file.map(field, 'a rate limit: `unit` and `requests_per_unit`, or `unlimited: true`')
    if (fields === undefined) return undefined
    this.#noteUnknown(fields, knownInLimit)
    const name = this.#text(fields, 'name')
    const unlimited = this.#flag(fields, 'unlimited')
    const unit = this.#unit(field, fields, unlimited)
    const requests = this.#requests(field, fields, unlimited)
    return {
      ...{ file: field.file, line: field.line, name },
      per: unlimited || unit === undefined ? undefined : { unit, requests },
      replaces: this.#replaces(fields, name),
    }
  }

  #unit(limit: ForeignValue, fields: Fields, unlimited: boolean): EnvoyUnit | undefined {
    const text = this.#text(fields, 'unit').toLowerCase()
    const unit = unitNames.find((one) => one === text)
    const at = fields.get('unit') ?? limit
    if (unlimited && unit !== undefined)
      this.#file.problem(at, 'has a `unit` beside `unlimited`; a limit has one of them')
    if (!unlimited && unit === undefined)
      this.#file.problem(
        at,
        `the unit must be one of ${unitNames.join(', ')}, but is ${text === '' ? 'missing' : text}`,
      )
    return unit
  }

  #requests(limit: ForeignValue, fields: Fields, unlimited: boolean): number {
    const field = fields.get('requests_per_unit')
    if (field !== undefined && !isEmpty(field))
      return this.#file.wholeNumber(field, requestsMax, 'requests_per_unit') ?? 0
    if (!unlimited)
      this.#note(
        limit,
        'info',
        'without `requests_per_unit` nothing is admitted, as before',
        'Write a number if that was not meant.',
      )
    return 0
  }

  #replaces(fields: Fields, own: string): readonly string[] {
    const field = fields.get('replaces')
    if (field === undefined || isEmpty(field)) return []
    const items = this.#file.list(field, 'a list of maps with a `name`') ?? []
    return items.flatMap((item) => {
      const entry = this.#file.map(item, 'a map with the `name` of a limit')
      if (entry === undefined) return []
      this.#noteUnknown(entry, ['name'])
      const name = this.#text(entry, 'name')
      if (name === '') return this.#file.problem(item, 'needs the `name` of a limit') ?? []
      if (name === own) return this.#file.problem(item, 'a limit cannot replace itself') ?? []
      return [name]
    })
  }

  #noteFlags(fields: Fields, limit: EnvoyLimit | undefined): void {
    const records = 'every decision is recorded with its descriptor, so there is nothing to turn on'
    const ask = 'Ask the usage API, or ClickHouse.'
    const isShareless = !this.#text(fields, 'value').endsWith('*')
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
    for (const [flag, kind, what, advice] of notes) {
      const field = fields.get(flag)
      if (field !== undefined && this.#flag(fields, flag)) this.#note(field, kind, `${flag}${what}`, advice)
    }
  }

  #noteUnknown(fields: Fields, known: readonly string[]): void {
    for (const [name, field] of fields) {
      if (known.includes(name)) continue
      const advice = 'Look it up in the documentation of the version you run, and write what it does into the policy.'
      this.#note(field, 'lost', `${name}: this key is not known here`, advice)
    }
  }

  #note({ file, line }: ForeignValue, kind: ImportNote['kind'], what: string, advice: string): void {
    this.#notes.push({ file, line, kind, what, advice })
  }

  #text(fields: Fields, name: string): string {
    const field = fields.get(name)
    return field === undefined ? '' : (this.#file.text(field, name) ?? '')
  }

  #flag(fields: Fields, name: string): boolean {
    const field = fields.get(name)
    return field !== undefined && (this.#file.flag(field, name) ?? false)
  }
}

const meansNothing = (flag: string, missing: string) =>
  [flag, 'info', ` without ${missing} means nothing`, 'Leave it out.'] as const

const unitNames = Object.keys(windowOfUnit) as readonly EnvoyUnit[]
