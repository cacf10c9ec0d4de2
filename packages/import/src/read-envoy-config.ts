import {
  type EnvoyConfig,
  type EnvoyDescriptor,
  type EnvoyLimit,
  type EnvoyUnit,
  windowOfUnit,
} from './envoy-config.ts'
import type { Notes } from './notes.ts'
import { Entry, type YamlFile } from './yaml-config.ts'

/** A route for every descriptor is the least that becomes of them, and a policy can have at most this many. */
const descriptorsMax = 10_000
/** Envoy asks with a handful of entries; a cycle of aliases ends here. */
const depthMax = 32
/** It is a 32-bit number there. */
const requestsMax = 4_294_967_295

const knownInDescriptor =
  /^(?:key|value|rate_limit|descriptors|shadow_mode|detailed_metric|value_to_metric|share_threshold|quota_mode|metadata)$/
const knownInLimit = /^(?:unit|requests_per_unit|unlimited|name|replaces)$/

/**
 * Reads a configuration file of `envoyproxy/ratelimit`, if there is one among the documents. What its server refuses
 * to load is a problem of the file.
 */
export function readEnvoyConfig({ file, documents: [root, second] }: YamlFile, notes: Notes): EnvoyConfig | undefined {
  second?.problem('is not valid YAML: a configuration is a single document, but another one begins here')
  return root === undefined ? undefined : new ConfigReader(notes).config(new Entry(file, root, rootIs))
}

class ConfigReader {
  readonly #notes: Notes
  #count = 0

  constructor(notes: Notes) {
    this.#notes = notes
  }

  config(root: Entry): EnvoyConfig {
    this.#notes.nameUnknown(root.fields, /^(?:domain|descriptors)$/, 'the configuration')
    const domain = root.text('domain')
    if (root.isMap && domain === '') root.problem('needs a non-empty `domain`')
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
      item.problem(`is descriptor ${this.#count}; a policy can have at most ${descriptorsMax} routes`)
    if (this.#count > descriptorsMax) return undefined
    this.#notes.nameUnknown(item.fields, knownInDescriptor, 'a descriptor')
    const [key, value] = [item.text('key'), item.text('value')]
    if (item.isMap && key === '') item.problem('needs a non-empty `key`')
    const limit = this.#limit(
      item.at('rate_limit', 'a rate limit: `unit` and `requests_per_unit`, or `unlimited: true`'),
    )
    const isShadow = item.flag('shadow_mode') || item.flag('quota_mode')
    if (item.fields.has('metadata')) this.#notes.changed(item.at('metadata'), 'metadata: answers to Envoy carry none')
    for (const flag of ['detailed_metric', 'value_to_metric'])
      if (item.flag(flag)) this.#notes.info(item.at(flag), `${flag}: every decision is recorded with its descriptor`)
    if (item.flag('quota_mode')) {
      const what = 'quota_mode became `mode: shadow`: requests above the quota are recorded, not refused'
      this.#notes.changed(item.at('quota_mode'), what, 'See the records for the quota.')
    }
    if (item.flag('share_threshold') && !value.endsWith('*'))
      this.#notes.info(item.at('share_threshold'), 'share_threshold without a value that ends in `*` has no effect')
    if (item.flag('shadow_mode') && limit === undefined)
      this.#notes.info(item.at('shadow_mode'), 'shadow_mode without a rate_limit has no effect')
    const isShared = item.flag('share_threshold') && value.endsWith('*')
    const descriptors = this.#descriptors(item, depth + 1)
    return { file: item.file, line: item.line, key, value, limit, isShadow, isShared, descriptors }
  }

  #limit(entry: Entry): EnvoyLimit | undefined {
    if (entry.isEmpty) return undefined
    this.#notes.nameUnknown(entry.fields, knownInLimit, 'a limit')
    const name = entry.text('name')
    const unlimited = entry.flag('unlimited')
    const unit = this.#unit(entry, unlimited)
    const requests = entry.number('requests_per_unit', requestsMax)
    if (requests === undefined && !unlimited) {
      const what = 'without `requests_per_unit` nothing is admitted, as before'
      this.#notes.info(entry, what, 'Write a number if you did not mean that.')
    }
    const per = unlimited || unit === undefined ? undefined : { unit, requests: requests ?? 0 }
    return { file: entry.file, line: entry.line, name, per, replaces: this.#replaces(entry, name) }
  }

  #unit(limit: Entry, unlimited: boolean): EnvoyUnit | undefined {
    const text = limit.text('unit').toLowerCase()
    const unit = unitNames.find((one) => one === text)
    const at = limit.at('unit')
    if (unlimited && unit !== undefined) at.problem('has `unit` and `unlimited`; a limit supports only one of them')
    if (limit.isMap && !unlimited && unit === undefined)
      at.problem(`the unit must be one of ${unitNames.join(', ')}, but is ${text === '' ? 'missing' : text}`)
    return unit
  }

  #replaces(limit: Entry, own: string): readonly string[] {
    const items = limit.items('replaces', 'a list of maps with a `name`', 'a map with the `name` of a limit')
    return items.map((item) => {
      this.#notes.nameUnknown(item.fields, /^name$/, 'replaces')
      const name = item.text('name')
      if (item.isMap && name === '') item.problem('needs the `name` of a limit')
      if (name !== '' && name === own) item.problem('a limit cannot replace itself')
      return name
    })
  }
}

const rootIs = 'a configuration of envoyproxy/ratelimit: `domain` and `descriptors`'

const unitNames = Object.keys(windowOfUnit) as readonly EnvoyUnit[]
