import type { UsageDimension, UsageQuestion, UsageStep } from '@weir/core/usage/usage-question.ts'
import type { ClickHouseClient } from './connect.ts'

/** One row of an answer. Counts are text where they could exceed 2^53. */
export interface UsageRow extends Partial<Record<UsageDimension, string>> {
  /** Start of the step, ISO 8601 with the zone's offset. Absent for step `total`. */
  readonly ts?: string
  /** Decisions. */
  readonly count: string
  readonly allowed: string
  readonly denied: string
  /** Units consumed by the allowed decisions. */
  readonly cost: string
}

/** A bound on one answer; the console says when it was reached. */
export const usageRowsMax = 10_000

const stepStart: Record<Exclude<UsageStep, 'total'>, string> = {
  minute: 'toStartOfMinute(toTimeZone(u.ts, {zone:String}))',
  quarter_hour: 'toStartOfFifteenMinutes(toTimeZone(u.ts, {zone:String}))',
  hour: 'toStartOfHour(toTimeZone(u.ts, {zone:String}))',
  day: 'toStartOfDay(toTimeZone(u.ts, {zone:String}))',
  month: 'toDateTime(toStartOfMonth(toTimeZone(u.ts, {zone:String})), {zone:String})',
}

/** The smallest rollup that can answer. Times are cut to its buckets: minutes for step `minute`, else quarter hours. */
function tableFor({ step, subject, by }: UsageQuestion): { table: string; bucketMs: number } {
  if (step === 'minute') return { table: 'weir.usage_1m', bucketMs: 60_000 }
  const everybody = subject === undefined && !by.includes('subject') && !by.includes('key_id')
  return { table: everybody ? 'weir.usage_total_15m' : 'weir.usage_15m', bucketMs: 900_000 }
}

/** The SQL of a question. Names come from closed lists, values travel as parameters. */
function usageQuery(question: UsageQuestion): { query: string; params: Record<string, unknown> } {
  const { table, bucketMs } = tableFor(question)
  const { step, by, subject } = question
  const time = step === 'total' ? [] : [stepStart[step]]
  const groups = [...time, ...by.map((name) => `u.${name}`)]
  const columns = [
    ...time.map((start) => `formatDateTime(${start}, '%Y-%m-%dT%H:%i:%S%z') AS ts`),
    ...by.map((name) => `u.${name} AS ${name}`),
    'sum(u.count) AS count',
    "sumIf(u.count, u.outcome = 'allow') AS allowed",
    "sumIf(u.count, u.outcome = 'deny') AS denied",
    "sumIf(u.cost, u.outcome = 'allow') AS cost",
  ]
  const query = [
    `SELECT ${columns.join(', ')}`,
    `FROM ${table} AS u`,
    'WHERE u.ts >= fromUnixTimestamp64Milli({from:Int64}) AND u.ts < fromUnixTimestamp64Milli({to:Int64})',
    subject === undefined ? '' : 'AND u.subject = {subject:String}',
    groups.length === 0 ? '' : `GROUP BY ${groups.join(', ')} ORDER BY ${groups.join(', ')}`,
    `LIMIT ${usageRowsMax}`,
  ]
  const params: Record<string, unknown> = {
    from: Math.floor(question.fromMs / bucketMs) * bucketMs,
    to: Math.ceil(question.toMs / bucketMs) * bucketMs,
    zone: question.timeZone,
  }
  if (subject !== undefined) params.subject = subject
  return { query: query.filter((line) => line !== '').join('\n'), params }
}

/** ClickHouse writes an offset as +0545; ISO 8601's extended form, which all readers take, has +05:45. */
const withColon = (ts: string) => ts.replace(/(\d\d)$/, ':$1')

/** Answers from the rollups; rejects with ClickHouse's error. */
export async function askUsage(client: ClickHouseClient, question: UsageQuestion): Promise<UsageRow[]> {
  const { query, params } = usageQuery(question)
  const answer = await client.query({ query, query_params: params, format: 'JSONEachRow' })
  const rows = await answer.json<UsageRow>()
  return rows.map((row) => (row.ts === undefined ? row : { ...row, ts: withColon(row.ts) }))
}
