import { reasons } from '@weir/core/limits/decision.ts'
import type { Schema, ValueOf } from './schema.ts'

/**
 * The columns of a decision, once: its record on `weir.decisions.v1` is read by them, metering stores them, ClickHouse
 * is asked for them, the API shows them, and docs/schemas/weir.decisions.v1.json lists them. CONTRIBUTING.md says what
 * else a new one needs.
 */

/** A column of a decision. */
interface Column {
  readonly schema: Schema
  /** The stored value where a record lacks the column, as older ones may. Absent: every record has it. */
  readonly absent?: unknown
  /** Whether it stays in Kafka. */
  readonly isStored?: false
}

const text = <const Words extends string>(description?: Words) =>
  ({ type: 'string', ...(description === undefined ? {} : { description }) }) as const
const id = (description: string) => ({ type: 'string', format: 'uuid', description }) as const
const count = (description: string) => ({ type: 'integer', minimum: 0, description }) as const
const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  ({ enum: values, description }) as const

const quantities = (description: string) =>
  ({ type: 'object', additionalProperties: { type: 'integer', minimum: 0 }, description }) as const

const limit = {
  type: 'object',
  required: ['name', 'size', 'used', 'remaining', 'reset_ms'],
  properties: {
    name: text('name of the limit'),
    size: count('what used and remaining add up to, in units'),
    used: count(
      "units in the current span, this decision's charge included, but not what is only held: size less used and remaining. The most, where admissions share a record",
    ),
    remaining: count('units left'),
    reset_ms: count('milliseconds from `ts` until all of it is unused, without further requests'),
    by: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'what it counted by beyond the subject, by the texts of its scope; values that callers send are hashed (sha256:…) unless the limit has record: plain',
    },
    at: text("the ancestor whose plan's limit it is, and that it counts; absent for the subject itself"),
  },
} as const

/** By name, in the order of the record. */
export const decisionColumns = {
  v: { schema: { const: 1 } },
  id: { schema: id("UUID version 7; the answer's Weir-Decision") },
  ts: {
    schema: {
      type: 'string',
      pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3}$',
      description: 'YYYY-MM-DD hh:mm:ss.SSS, UTC, by the clock of the ingress',
    },
  },
  subject: { schema: text('the customer; `ip:ADDRESS` for an anonymous caller') },
  key_id: { schema: text('id of the key; empty for none') },
  plan: { schema: text('the plan of the subject then') },
  route: { schema: text('the template, never the path of the request') },
  method: { schema: text('of the request') },
  cost: { schema: count('units of one decision') },
  count: { schema: count('equal decisions that the record stands for; 0 for a correction') },
  outcome: { schema: oneOf(['allow', 'deny'], 'what the request really got') },
  reason: { schema: oneOf(reasons, 'why; `ok` for what was allowed') },
  mode: {
    schema: oneOf(
      ['enforce', 'shadow'],
      '`shadow`: allowed, and reason and denied_by name the limit that would have denied',
    ),
  },
  charged: { schema: oneOf(['yes', 'no', 'unknown'], 'whether Redis counts its units') },
  denied_by: { schema: text('the limit that denied, degraded, or is in shadow; empty for none') },
  shadowed_by: { schema: text('the limit in shadow that would have denied what was allowed'), absent: '' },
  limits: { schema: { type: 'array', items: limit, description: 'the limits of the decision, those in shadow too' } },
  policy: { schema: count('offset in weir.policy.v1 of the last change in force'), absent: -1 },
  retry_ms: {
    schema: {
      type: 'integer',
      minimum: -1,
      description: 'of a denial: milliseconds that the caller was told to wait; -1 where waiting does not help',
    },
    absent: 0,
  },
  ip: {
    schema: text("the caller's address as WEIR_RECORD_ADDRESS says, only where a limit counts by address"),
    absent: '',
  },
  trace: {
    schema: {
      type: 'string',
      pattern: '^[0-9a-f]{32}-[0-9a-f]{16}$',
      description: 'of a decision that is traced: the W3C ids of its trace and of the span of its request; not stored',
    },
    absent: '',
    isStored: false,
  },
  meter: { schema: text('the meter that measured it; empty for none'), absent: '' },
  dims: {
    schema: {
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: 8,
      description: 'labels of its usage, such as its model, by the names of dimensions',
    },
    absent: {},
  },
  held: {
    schema: quantities('units that the decision holds until it is settled, by their names; a correction repeats them'),
    absent: {},
  },
  units: {
    schema: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description:
        'units besides the cost: used, by an admission or a correction; asked for, by a denial. Below zero: what a correction takes back of what its decision was counted with',
    },
    absent: {},
  },
  basis: {
    schema: oneOf(
      ['', 'reported', 'counted', 'bound'],
      'how `units` are known: `reported` by the caller or the response; `counted` by what was seen of it; `bound`: as held; empty for none',
    ),
    absent: '',
  },
  parents: {
    schema: { type: 'array', items: { type: 'string' }, description: "the subject's ancestors, the nearest first" },
    absent: [],
  },
  corrects: {
    schema: id('of a correction: the decision that it corrects'),
    absent: '00000000-0000-0000-0000-000000000000',
  },
  adjustment: {
    schema: { type: 'integer', description: 'of a correction: units by which the cost of that decision changes' },
    absent: 0,
  },
  count_adjustment: {
    schema: {
      type: 'integer',
      description:
        'of a correction: decisions that its record counts too many, below zero: an application took them ahead',
    },
    absent: 0,
  },
  journal: { schema: id('process start that wrote the record') },
  seq: { schema: count('contiguous per journal and partition') },
} as const satisfies Readonly<Record<string, Column>>

type Columns = typeof decisionColumns
type Name = keyof Columns
type Later = { [Key in Name]: Columns[Key] extends { readonly absent: unknown } ? Key : never }[Name]

/** One limit as the record carries it. */
export type LimitRecordV1 = ValueOf<typeof limit>
/** The decision record of `weir.decisions.v1`. Its key in Kafka is the subject. */
export type DecisionRecordV1 = { readonly [Key in Exclude<Name, Later>]: ValueOf<Columns[Key]['schema']> } & {
  readonly [Key in Later]?: ValueOf<Columns[Key]['schema']>
}

/** The names of all columns. */
const columnNames = Object.keys(decisionColumns) as readonly Name[]
const columns: Readonly<Record<Name, Column>> = decisionColumns
/** The columns that ClickHouse stores. */
export const storedColumns = columnNames.filter((name) => columns[name].isStored !== false)
/** The columns that every record has. */
export const requiredColumns = columnNames.filter((name) => !('absent' in columns[name]))

/** A stored decision, with the values that ClickHouse has where a record lacks a column. */
export type StoredDecision = {
  readonly [Key in Exclude<Name, 'v' | 'ts' | 'limits' | 'trace' | 'journal' | 'seq'>]: ValueOf<Columns[Key]['schema']>
} & { readonly ts_ms: number; readonly limits: readonly Required<LimitRecordV1>[] }

/** A record as ClickHouse stores it. */
export const storedDecision = ({ limits, ...record }: DecisionRecordV1, tsMs: number): StoredDecision => ({
  ...(Object.fromEntries(columnNames.map((name) => [name, columns[name].absent])) as StoredDecision),
  ...record,
  ts_ms: tsMs,
  limits: limits.map((one) => ({ ...one, by: one.by ?? {}, at: one.at ?? '' })),
})
