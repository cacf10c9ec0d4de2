import { definedFields } from '@weir/core/defined-fields.ts'
import { type EntityKind, isJsonObject, type JsonObject, type JsonValue, sectionOf } from '../entities.ts'
import { defaultKeyId } from '../reader/read-keys.ts'
import type { PolicyState } from './policy-state.ts'

/** What a text is made of: a PolicyState is one. */
export type PolicySource = Pick<PolicyState, 'list' | 'get' | 'keysOf'>

/** In the order in which people read a policy. */
export const textOrder = [
  'identity',
  'token',
  'plan',
  'price',
  'rateCard',
  'limit',
  'route',
  'refusal',
  'upstream',
  'meter',
  'subject',
  'endpoint',
  'watch',
  'silence',
  'block',
  'portal',
  'unsubscribed',
  'ownAlerts',
] as const

/**
 * The policy as the lines of a weir.yaml, an entry a line: the same for the same entities, and read again the same
 * policy. They come one by one: with a million subjects the whole would need too much memory.
 */
export function* policyLines(source: PolicySource): Iterable<string> {
  yield 'version: 1'
  for (const kind of textOrder) {
    let isFirst = true
    for (const line of sectionLines(source, kind)) {
      if (isFirst) yield* ['', `${sectionOf[kind]}:`]
      isFirst = false
      yield `  ${line}`
    }
  }
}

function* sectionLines(source: PolicySource, kind: (typeof textOrder)[number]): Iterable<string> {
  for (const { name, body } of inTextOrder(source, kind)) {
    if (kind === 'route') yield `- ${yamlOf({ match: name, ...body })}`
    else if (kind === 'identity') yield* members(body)
    else if (kind === 'subject') yield `${scalar(name)}: ${yamlOf(withKeys(source, name, body))}`
    else yield `${scalar(name)}: ${yamlOf(body)}`
  }
}

/** Subjects have no order of their own. */
function inTextOrder(source: PolicySource, kind: EntityKind) {
  const entities = source.list(kind)
  return kind === 'subject' ? [...entities].sort((a, b) => (a.name < b.name ? -1 : 1)) : entities
}

function withKeys(source: PolicySource, subject: string, { plan, ...rest }: JsonObject): JsonObject {
  const keys = [...source.keysOf(subject)].sort().map((sha256): JsonObject => {
    const { id, expires, limits } = source.get('key', sha256)?.body ?? {}
    const own = id === undefined || id === defaultKeyId(sha256) ? {} : { id }
    return { sha256, ...own, ...definedFields({ expires, limits }) }
  })
  return { ...(plan === undefined ? {} : { plan }), ...rest, ...(keys.length === 0 ? {} : { keys }) }
}

/** A value on one line, as a person would write it. */
export function yamlOf(value: JsonValue): string {
  if (typeof value === 'string') return scalar(value)
  if (Array.isArray(value)) return `[${value.map(yamlOf).join(', ')}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  const parts = members(value)
  return parts.length === 0 ? '{}' : `{ ${parts.join(', ')} }`
}

const members = (body: JsonObject) => Object.entries(body).map(([name, value]) => `${scalar(name)}: ${yamlOf(value)}`)

/** Words, durations and percents stay as they are; whatever YAML might take for something else is quoted. */
function scalar(text: string): string {
  const isWord = /^[A-Za-z][\w./-]{0,127}$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isWord || /^[1-9]\d{0,14}(?:ms|s|m|h|d|%)$/.test(text) ? text : quoted(text)
}

/** JSON's strings are YAML's, but for what JSON leaves unescaped and YAML does not allow. */
const quoted = (text: string) =>
  JSON.stringify(text).replaceAll(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
