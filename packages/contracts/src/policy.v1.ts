import type { ForgottenCount } from '@weir/core/audit/quota.ts'
import {
  type Entity,
  type EntityChange,
  type EntityKind,
  type EntityOrigin,
  entityKinds,
  entityOrigins,
  type Issue,
  isJsonObject,
  type JsonObject,
} from '@weir/policy/entities.ts'
import { type Checks, isCount, isOneOf, isOptional, isText, parseJson, wrongField } from './fields.ts'

/** An entity as its record in `weir.policy.v1` carries it. Key = `kind/name`; a record without a value deletes it. */
export interface EntityRecordV1 {
  readonly v: 1
  readonly origin: EntityOrigin
  readonly position?: number
  readonly body: JsonObject
  /** Of keys that the admin API made. Absent in older records, and ignored by older readers. */
  readonly issue?: Issue
}

/** One line of the audit: what happened to an entity, or to a subject's counts. */
export interface ChangeLineV1 {
  readonly what: 'put' | 'delete' | 'create' | 'rotate' | 'revoke' | 'reset' | 'unblock'
  readonly kind: string
  readonly name: string
  /** Of a reset, in the line of a limit: what its counts held. Absent for none, and in older records. */
  readonly forgotten?: readonly ForgottenCount[]
}

/**
 * The last record of every change, key = `change/` and a UUID version 7. The records between it and the change before
 * come into force with it, as one transaction; without it, they do not.
 */
export interface ChangeRecordV1 {
  readonly v: 1
  /** RFC 3339, UTC, by the clock of the console. */
  readonly at: string
  /** Name of the token; `root` for the one of the environment. */
  readonly by: string
  /** The first lines of a long change. */
  readonly summary: readonly ChangeLineV1[]
  /** Number of all lines. */
  readonly total: number
  /**
   * The change that its writer took for the last one. If there is another between the two, no reader applies this one.
   */
  readonly after?: ChangePositionV1
}

/** The end of a change: offset (-1 for none, before the first change) and id of its audit record. */
export interface ChangePositionV1 {
  readonly offset: string
  readonly id: string
}

/** A record's key and value as text; null as the value is Kafka's tombstone. */
export interface PolicyMessage {
  readonly key: string
  readonly value: string | null
}

/** The result of reading a record. */
export type ParsedPolicyRecord =
  | { readonly kind: 'entity'; readonly change: EntityChange }
  | { readonly kind: 'change'; readonly id: string; readonly change: ChangeRecordV1 }
  /** Processes forget the cached denials of the subject. */
  | { readonly kind: 'reset'; readonly subject: string }
  /** Nothing to do: a deleted audit record, or the tombstone after a reset. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** Lines of a change record: the audit shows all of a usual change and the beginning of a huge one. */
export const changeLinesMax = 100

/** Encodes an entity that was put or deleted. */
export function encodeEntityChange({ kind, name, entity }: EntityChange): PolicyMessage {
  return { key: `${kind}/${name}`, value: entity === undefined ? null : encodeEntity(entity) }
}

function encodeEntity({ origin, position, body, issue }: Entity): string {
  const at = position === undefined ? {} : { position }
  const record: EntityRecordV1 = { v: 1, origin, ...at, body, ...(issue === undefined ? {} : { issue }) }
  return JSON.stringify(record)
}

/** `summary` may be of any length; the record holds its first lines and their number. */
export function encodeChange(
  id: string,
  change: {
    readonly atMs: number
    readonly by: string
    readonly summary: readonly ChangeLineV1[]
    readonly after?: ChangePositionV1
  },
): PolicyMessage {
  const { atMs, by, summary, after } = change
  const [at, lines] = [new Date(atMs).toISOString(), summary.slice(0, changeLinesMax)]
  const last = after === undefined ? {} : { after }
  const record: ChangeRecordV1 = { v: 1, at, by, summary: lines, total: summary.length, ...last }
  return { key: `change/${id}`, value: JSON.stringify(record) }
}

/** Encodes the tombstone of an audit record. */
export const encodeChangeDeletion = (id: string): PolicyMessage => ({ key: `change/${id}`, value: null })

/** Encodes the reset and its tombstone, both for the same change: a reset is an event, not state. */
export function encodeReset(subject: string): readonly [PolicyMessage, PolicyMessage] {
  return [
    { key: `reset/${subject}`, value: '{"v":1}' },
    { key: `reset/${subject}`, value: null },
  ]
}

/** Reads one record. Never throws: topics are open to other writers. */
export function parsePolicyRecord(key: Buffer | null, value: Buffer | null): ParsedPolicyRecord {
  // Decoded apart: a part of a text would keep the whole of it in memory, and names are kept by the million.
  const slash = key?.indexOf('/') ?? -1
  const kind = slash === -1 ? '' : (key?.toString('utf8', 0, slash) ?? '')
  const name = slash === -1 ? '' : (key?.toString('utf8', slash + 1) ?? '')
  if (name === '') return { kind: 'unreadable', reason: 'the key is not of the form kind/name' }
  const parsed = value === null ? null : parseJson(value.toString('utf8'))
  if (parsed === undefined) return { kind: 'unreadable', reason: 'the value is not JSON' }
  if (parsed !== null && (!isJsonObject(parsed) || parsed.v !== 1)) {
    return { kind: 'unreadable', reason: 'the value is not of version 1' }
  }
  if (kind === 'reset') return parsed === null ? { kind: 'nothing' } : { kind: 'reset', subject: name }
  if (kind === 'change') return readChange(name, parsed)
  const known = entityKinds.find((one) => one === kind)
  if (known === undefined)
    return { kind: 'unreadable', reason: `there is no kind ${JSON.stringify(kind.slice(0, 40))}` }
  return readEntity(known, name, parsed)
}

function readEntity(kind: EntityKind, name: string, value: JsonObject | null): ParsedPolicyRecord {
  if (value === null) return { kind: 'entity', change: { kind, name, entity: undefined } }
  const { position, body, issue } = value
  const origin = entityOrigins.find((one) => one === value.origin)
  if (origin === undefined) return { kind: 'unreadable', reason: 'field origin is missing or wrong' }
  if (!isJsonObject(body)) return { kind: 'unreadable', reason: 'field body is missing or wrong' }
  if (position !== undefined && typeof position !== 'number') {
    return { kind: 'unreadable', reason: 'field position is wrong' }
  }
  return {
    kind: 'entity',
    change: { kind, name, entity: { kind, name, origin, position, body, issue: readIssue(issue) } },
  }
}

const isTime = (value: unknown) => isText(value) && !Number.isNaN(Date.parse(value))
const issueFields: Checks<keyof Issue> = { at: isTime, prefix: isText }
/** Only shown to people: a wrong one is as good as none. */
const readIssue = (value: unknown) => (wrongField(value, issueFields) === undefined ? (value as Issue) : undefined)

const isAll = (check: (value: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(check)

const positionFields: Checks<keyof ChangePositionV1> = {
  offset: (value) => isText(value) && /^(?:-1|\d{1,19})$/.test(value),
  id: isText,
}
const forgottenFields: Checks<keyof ForgottenCount> = { count: isText, end_ms: isCount, units: isCount }
const lineFields: Checks<keyof ChangeLineV1> = {
  what: isOneOf(['put', 'delete', 'create', 'rotate', 'revoke', 'reset', 'unblock']),
  kind: isText,
  name: isText,
  forgotten: isOptional(isAll((count) => wrongField(count, forgottenFields) === undefined)),
}
const changeFields: Checks = {
  at: isTime,
  by: isText,
  summary: isAll((line) => wrongField(line, lineFields) === undefined),
  after: isOptional((position) => wrongField(position, positionFields) === undefined),
}
type ChangeFields = Pick<ChangeRecordV1, 'at' | 'by' | 'summary' | 'after'> & { readonly total?: unknown }
const isChange = (value: JsonObject): value is JsonObject & ChangeFields =>
  wrongField(value, changeFields) === undefined

function readChange(id: string, value: JsonObject | null): ParsedPolicyRecord {
  if (value === null) return { kind: 'nothing' }
  if (!isChange(value)) return { kind: 'unreadable', reason: `field ${wrongField(value, changeFields)} is wrong` }
  const { at, by, summary, total, after } = value
  const count = typeof total === 'number' ? total : summary.length
  const last = after === undefined ? {} : { after }
  return { kind: 'change', id, change: { v: 1, at, by, summary, total: count, ...last } }
}
