import type { Reach } from '@weir/core/usage/reach.ts'
import type {
  OutcomeDimension,
  OutcomeQuery,
  RollupQuery,
  Step,
  UsageDimension,
  UsageQuery,
  Values,
} from '@weir/core/usage/usage-query.ts'
import { type ClickHouseClient, readRows } from './connect.ts'
import { withinReach } from './within-reach.ts'

/** A bound on one answer; the console says when it was reached. */
export const answerRowsMax = 10_000

const stepStart: Record<Exclude<Step, 'total'>, string> = {
  minute: 'toStartOfMinute(toTimeZone(u.ts, {zone:String}))',
  quarter_hour: 'toStartOfFifteenMinutes(toTimeZone(u.ts, {zone:String}))',
  hour: 'toStartOfHour(toTimeZone(u.ts, {zone:String}))',
  day: 'toStartOfDay(toTimeZone(u.ts, {zone:String}))',
  week: 'toDateTime(toStartOfWeek(toTimeZone(u.ts, {zone:String}), 1), {zone:String})',
  month: 'toDateTime(toStartOfMonth(toTimeZone(u.ts, {zone:String})), {zone:String})',
}

/**
 * A time in ISO 8601 with the offset that the zone has then. The offset is what the local clock shows, taken for UTC,
 * less the time itself: ClickHouse's `%z` and `timeZoneOffset` are wrong for zones that have crossed the date line.
 */
function iso8601(start: string): string {
  const clock = `formatDateTime(${start}, '%Y-%m-%dT%H:%i:%S')`
  const offset = `dateDiff('second', ${start}, parseDateTimeBestEffort(${clock}, 'UTC'))`
  const digits = (value: string) => `leftPad(toString(${value}), 2, '0')`
  const hours = digits(`intDiv(abs(${offset}), 3600)`)
  const minutes = digits(`intDiv(abs(${offset}), 60) % 60`)
  return `concat(${clock}, if(${offset} < 0, '-', '+'), ${hours}, ':', ${minutes})`
}

/** The table that answers a question. */
interface Source {
  readonly table: string
  readonly bucketMs: number
  /** Sums, each `expression AS name` over the table as `u`. */
  readonly sums: readonly string[]
}

/**
 * A dimension as SQL. `denied_by` of an allowed request names the limit in shadow that would have refused it, or one
 * that degraded it: who is limited to subjects learns nothing of limits in shadow.
 */
const dimensionSql = (name: string, { isOwn }: Reach) =>
  isOwn && name === 'denied_by' ? "if(u.outcome = 'deny', u.denied_by, '')" : `u.${name}`

/**
 * The conditions of a question's filters. They compare what the caller would see as a group: a filter tells nothing
 * that `by` does not. The names of the parameters are of a closed list, as those of the dimensions are.
 */
function filtersOf(reach: Reach, { only, except, subjectPrefix }: RollupQuery<string>) {
  const sql: string[] = []
  const params: Record<string, unknown> = {}
  const add = (filters: Values<string>, kind: 'only' | 'except') => {
    for (const [name, values] of Object.entries(filters)) {
      sql.push(`AND ${dimensionSql(name, reach)} ${kind === 'only' ? 'IN' : 'NOT IN'} {${kind}_${name}:Array(String)}`)
      params[`${kind}_${name}`] = values
    }
  }
  add(only, 'only')
  add(except, 'except')
  if (subjectPrefix !== undefined) {
    sql.push('AND startsWith(u.subject, {subject_prefix:String})')
    params.subject_prefix = subjectPrefix
  }
  return { sql, params }
}

/** The SQL of a question. Names come from closed lists, values travel as parameters. */
function questionSql(
  source: Source,
  reach: Reach,
  question: RollupQuery<string>,
): { query: string; params: Record<string, unknown> } {
  const { step, by } = question
  const { bucketMs } = source
  const time = step === 'total' ? [] : [stepStart[step]]
  const within = withinReach(reach, 'u.subject')
  const filters = filtersOf(reach, question)
  const groups = [...time, ...by.map((name) => dimensionSql(name, reach))]
  const columns = [
    ...time.map((start) => `${iso8601(start)} AS ts`),
    ...by.map((name) => `${dimensionSql(name, reach)} AS ${name}`),
    ...source.sums,
  ]
  const query = [
    `SELECT ${columns.join(', ')}`,
    `FROM ${source.table} AS u`,
    'WHERE u.ts >= fromUnixTimestamp64Milli({from:Int64}) AND u.ts < fromUnixTimestamp64Milli({to:Int64})',
    reach.isOwn ? `AND ${within.sql}` : '',
    ...filters.sql,
    groups.length === 0 ? '' : `GROUP BY ${groups.join(', ')} ORDER BY ${groups.join(', ')}`,
    `LIMIT ${answerRowsMax}`,
  ]
  const params: Record<string, unknown> = {
    from: Math.floor(question.fromMs / bucketMs) * bucketMs,
    to: Math.ceil(question.toMs / bucketMs) * bucketMs,
    zone: question.timeZone,
    ...within.params,
    ...filters.params,
  }
  return { query: query.filter((line) => line !== '').join('\n'), params }
}

/** Reads the rows of an answer, their times in ISO 8601 with the zone's offset. Rejects with ClickHouse's error. */
async function askRows<Row extends { readonly ts?: string }>(
  client: ClickHouseClient,
  source: Source,
  reach: Reach,
  question: RollupQuery<string>,
): Promise<Row[]> {
  const { query, params } = questionSql(source, reach, question)
  return readRows<Row>(client, query, params)
}

/** One row of an answer. Counts are text where they could exceed 2^53. */
export interface UsageRow extends Partial<Record<UsageDimension, string>> {
  /** Start of the step, ISO 8601 with the zone's offset. Absent for step `total`. */
  readonly ts?: string
  /** Decisions. */
  readonly count: string
  readonly allowed: string
  readonly denied: string
  /** Units consumed by the allowed decisions, corrections included. */
  readonly cost: string
}

/** The smallest rollup that can answer. Times are cut to its buckets: minutes for step `minute`, else quarter hours. */
function tableFor({ isOwn }: Reach, question: UsageQuery): { table: string; bucketMs: number } {
  const { step, by, only, except, subjectPrefix } = question
  if (step === 'minute') return { table: 'usage_1m', bucketMs: 60_000 }
  const named = [...by, ...Object.keys(only), ...Object.keys(except)]
  const isTotal = !isOwn && subjectPrefix === undefined && !named.includes('subject') && !named.includes('key_id')
  return { table: isTotal ? 'usage_total_15m' : 'usage_15m', bucketMs: 900_000 }
}

/** Units in 128 bits: over years and all subjects, 64 might not do. */
const usageSums = [
  'sum(u.count) AS count',
  "sumIf(u.count, u.outcome = 'allow') AS allowed",
  "sumIf(u.count, u.outcome = 'deny') AS denied",
  "toString(sumIf(toInt128(u.cost), u.outcome = 'allow')) AS cost",
]

/** Answers from the rollups; rejects with ClickHouse's error. */
export const askUsage = (client: ClickHouseClient, reach: Reach, question: UsageQuery): Promise<UsageRow[]> =>
  askRows(client, { ...tableFor(reach, question), sums: usageSums }, reach, question)

/** One row of an answer. Counts are text where they could exceed 2^53. */
export interface OutcomeRow extends Partial<Record<OutcomeDimension, string>> {
  /** Start of the step, ISO 8601 with the zone's offset. Absent for step `total`. */
  readonly ts?: string
  /** Answers of upstreams. */
  readonly count: string
  readonly status_1xx: string
  readonly status_2xx: string
  readonly status_3xx: string
  readonly status_4xx: string
  readonly status_5xx: string
  /** Answers that did not go out whole. */
  readonly broken: string
  readonly bytes_in: string
  readonly bytes_out: string
  /** Milliseconds, within about a hundredth; null where there was no answer. */
  readonly p50_ms: number | null
  readonly p90_ms: number | null
  readonly p99_ms: number | null
}

const summed = ['status_1xx', 'status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'broken', 'bytes_in', 'bytes_out']

/** Of no answers the quantile is not a number, which JSON has as null. */
const quantile = (index: number) => `round(quantilesTDigestMerge(0.5, 0.9, 0.99)(u.duration_ms)[${index}], 3)`

const outcomeSource = {
  table: 'outcomes_15m',
  bucketMs: 900_000,
  sums: [
    'sum(u.count) AS count',
    ...summed.map((name) => `sum(u.${name}) AS ${name}`),
    ...['p50_ms', 'p90_ms', 'p99_ms'].map((name, index) => `${quantile(index + 1)} AS ${name}`),
  ],
}

/** Answers from the rollup, by whole quarter hours; rejects with ClickHouse's error. */
export const askOutcomes = (client: ClickHouseClient, reach: Reach, question: OutcomeQuery): Promise<OutcomeRow[]> =>
  askRows(client, outcomeSource, reach, question)
