import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { decisionColumns, storedColumns } from '@weir/contracts/decision-columns.ts'
import { type Checks, isCount, isFields, isText, parseJson, wrongField } from '@weir/contracts/fields.ts'
import { parseTs } from '@weir/contracts/timestamp.ts'
import { topics } from '@weir/contracts/topics.ts'

/** Columns of a row. */
type Fields = Readonly<Record<string, unknown>>

/** A record that was parsed in full, to be encoded again. */
type SlowRow =
  | {
      readonly kind: 'row'
      readonly fields: Fields
      readonly journal: string
      readonly seq: number
      readonly ts: string
    }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** How the records of one topic are read, and which table gets them. */
export interface RecordKind {
  readonly topic: string
  readonly deadLetters: string
  readonly table: string
  /** Reads a value so strictly that ClickHouse accepts the row. Depends on the bytes alone: a repeat is the same. */
  readonly read: (value: Buffer) => SlowRow
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const isUuid = (value: unknown): value is string => typeof value === 'string' && uuid.test(value)
/** Times that the tables' months and their rollups can hold. */
const isInOurTime = (ts: string) => /^20\d\d/.test(ts)

const unreadable = (reason: string): SlowRow => ({ kind: 'unreadable', reason })

const limitColumns = Object.keys(decisionColumns.limits.schema.items.properties)

/** The members of an object that have these names, in their order; one that is missing is undefined. */
const pick = (from: object, names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, Reflect.get(from, name)]))

function readDecision(value: Buffer): SlowRow {
  const parsed = parseDecision(value)
  if (parsed.kind === 'unreadable') return unreadable(parsed.reason)
  const { id, ts, count, journal, seq, corrects } = parsed.decision
  if (!isUuid(id) || !isUuid(journal)) return unreadable('id or journal is not a UUID')
  if (corrects !== undefined && !isUuid(corrects)) return unreadable('corrects is not a UUID')
  if (!isInOurTime(ts)) return unreadable('ts is not in this century')
  if ((count === 0) !== (corrects !== undefined)) return unreadable('count is wrong')
  const limits = parsed.decision.limits.map((limit) => pick(limit, limitColumns))
  const fields = pick({ ...parsed.decision, limits }, storedColumns)
  return { kind: 'row', fields, journal: journal.toLowerCase(), seq, ts }
}

const outcomeFields: Checks = {
  v: (value) => value === 1,
  id: isUuid,
  ts: (value) => isText(value) && parseTs(value) !== undefined && isInOurTime(value),
  subject: isText,
  route: isText,
  method: isText,
  status: (value) => isCount(value) && value >= 100 && value <= 999,
  duration_ms: (value) => typeof value === 'number' && Number.isFinite(value),
  bytes_in: isCount,
  bytes_out: isCount,
  upstream: isText,
  error: isText,
  journal: isUuid,
  seq: isCount,
}

function readOutcome(value: Buffer): SlowRow {
  const parsed = parseJson(value.toString('utf8'))
  if (parsed === undefined) return unreadable('not JSON')
  const found = isFields(parsed) ? parsed : {}
  const wrong = wrongField(found, outcomeFields)
  if (wrong !== undefined) return unreadable(`field ${wrong} is missing or wrong`)
  const { journal, seq, ts } = found
  if (!isText(journal) || !isCount(seq) || !isText(ts)) return unreadable('not an outcome')
  const fields = pick(found, Object.keys(outcomeFields))
  return { kind: 'row', fields, journal: journal.toLowerCase(), seq, ts }
}

/** Records of decisions. */
export const decisions: RecordKind = {
  topic: topics.decisions,
  deadLetters: topics.decisionsDeadLetters,
  table: 'decisions',
  read: readDecision,
}

/** Records of how upstreams answered. */
export const outcomes: RecordKind = {
  topic: topics.outcomes,
  deadLetters: topics.outcomesDeadLetters,
  table: 'outcomes',
  read: readOutcome,
}
