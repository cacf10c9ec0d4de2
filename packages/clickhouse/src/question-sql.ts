import type { Question, Step } from '@weir/core/usage/question.ts'
import type { ClickHouseClient } from './connect.ts'
import { readRows } from './read-rows.ts'

/** A bound on one answer; the console says when it was reached. */
export const answerRowsMax = 10_000

const stepStart: Record<Exclude<Step, 'total'>, string> = {
  minute: 'toStartOfMinute(toTimeZone(u.ts, {zone:String}))',
  quarter_hour: 'toStartOfFifteenMinutes(toTimeZone(u.ts, {zone:String}))',
  hour: 'toStartOfHour(toTimeZone(u.ts, {zone:String}))',
  day: 'toStartOfDay(toTimeZone(u.ts, {zone:String}))',
  month: 'toDateTime(toStartOfMonth(toTimeZone(u.ts, {zone:String})), {zone:String})',
}

/** The table that answers a question. */
export interface Source {
  readonly table: string
  readonly bucketMs: number
  /** Sums, each `expression AS name` over the table as `u`. */
  readonly sums: readonly string[]
}

/** The SQL of a question. Names come from closed lists, values travel as parameters. */
function questionSql(source: Source, question: Question<string>): { query: string; params: Record<string, unknown> } {
  const { step, by, subject } = question
  const { bucketMs } = source
  const time = step === 'total' ? [] : [stepStart[step]]
  const groups = [...time, ...by.map((name) => `u.${name}`)]
  const columns = [
    ...time.map((start) => `formatDateTime(${start}, '%Y-%m-%dT%H:%i:%S%z') AS ts`),
    ...by.map((name) => `u.${name} AS ${name}`),
    ...source.sums,
  ]
  const query = [
    `SELECT ${columns.join(', ')}`,
    `FROM ${source.table} AS u`,
    'WHERE u.ts >= fromUnixTimestamp64Milli({from:Int64}) AND u.ts < fromUnixTimestamp64Milli({to:Int64})',
    subject === undefined ? '' : 'AND u.subject = {subject:String}',
    groups.length === 0 ? '' : `GROUP BY ${groups.join(', ')} ORDER BY ${groups.join(', ')}`,
    `LIMIT ${answerRowsMax}`,
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

/** Reads the rows of an answer, their times in ISO 8601 with the zone's offset. Rejects with ClickHouse's error. */
export async function askRows<Row extends { readonly ts?: string }>(
  client: ClickHouseClient,
  source: Source,
  question: Question<string>,
): Promise<Row[]> {
  const { query, params } = questionSql(source, question)
  const rows = await readRows<Row>(client, query, params)
  return rows.map((row) => (row.ts === undefined ? row : { ...row, ts: withColon(row.ts) }))
}
