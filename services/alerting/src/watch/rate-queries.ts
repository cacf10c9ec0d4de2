import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { Watch } from '@weir/policy/policy.ts'

/** The subject of rows about all subjects together. No subject of a policy begins with `_`. */
const allSubjects = '_all'
/** Less than the client waits: a query that is repeated does not run twice. */
const secondsMax = 15
const bounded = { clickhouse_settings: { ...countsAsNumbers, max_execution_time: secondsMax } }

/** Asks which subjects have far more, or far fewer, requests in a window than before it. Times are whole minutes. */
export interface RateQuestion extends Pick<Watch, 'per' | 'windowMs' | 'factor' | 'least'> {
  /** Which decisions are counted. */
  readonly outcome: 'allow' | 'deny'
  /** Far more of them than before; otherwise far fewer. */
  readonly isRise: boolean
  /** The first instant of the windows before. */
  readonly firstMs: number
  /** The first instant after the window. */
  readonly endMs: number
  readonly windowsBefore: number
  /** Subjects about which this watch has raised an alert of this type since then are left out. */
  readonly quiet: { readonly watch: string; readonly type: string; readonly sinceMs: number }
  readonly limit: number
}

/** A subject whose rate changed. */
export interface RateRow {
  readonly subject: string
  /** Decisions in the window. */
  readonly count: number
  /** In one of the windows before, on average; to hundredths. */
  readonly usual: number
}

/**
 * Where the requests of each kind are counted, and whose they are. No rollup has addresses, so those are read from the
 * rows themselves: of all rows of the time, as long as the query may take.
 */
const countedBy = {
  subject: { who: 'u.subject', table: 'usage_1m', rows: '1' },
  all: { who: `'${allSubjects}'`, table: 'usage_1m', rows: '1' },
  address: { who: "concat('ip:', u.ip)", table: 'decisions', rows: "u.ip != ''" },
} as const satisfies Readonly<Record<RateQuestion['per'], object>>

const sudden = {
  rise: 'decisions >= {least:UInt64} AND decisions >= average * {factor:UInt32}',
  fall: 'average >= {least:UInt64} AND decisions * {factor:UInt32} <= average',
}

/** Reads the subjects whose rate changed, those with most requests first. Rejects with ClickHouse's error. */
export async function readChangedRates(client: ClickHouseClient, question: RateQuestion): Promise<RateRow[]> {
  const { outcome, isRise, per, firstMs, endMs, windowMs, windowsBefore, factor, least, quiet, limit } = question
  const { who, table, rows: counted } = countedBy[per]
  const rows = await readRows<{ who: string; decisions: number; average: number }>(
    client,
    `SELECT ${who} AS who,
        sumIf(u.count, u.ts >= toDateTime({start:UInt32}, 'UTC')) AS decisions,
        sumIf(u.count, u.ts < toDateTime({start:UInt32}, 'UTC')) / {before:UInt32} AS average
      FROM ${table} AS u
      WHERE u.ts >= toDateTime({first:UInt32}, 'UTC') AND u.ts < toDateTime({end:UInt32}, 'UTC') AND u.outcome = {outcome:String}
        AND ${counted}
      GROUP BY who
      HAVING ${isRise ? sudden.rise : sudden.fall} AND who NOT IN (
        SELECT a.subject FROM alerts AS a
        WHERE a.type = {type:String} AND a.state = 'raised' AND a.time > fromUnixTimestamp64Milli({since:Int64})
          AND JSONExtractString(a.data, 'watch') = {watch:String})
      ORDER BY decisions + average DESC, who
      LIMIT {limit:UInt32}`,
    {
      first: firstMs / 1_000,
      start: (endMs - windowMs) / 1_000,
      end: endMs / 1_000,
      before: windowsBefore,
      outcome,
      least,
      factor,
      limit,
      type: quiet.type,
      watch: quiet.watch,
      since: quiet.sinceMs,
    },
    bounded,
  )
  return rows.map(({ who, decisions, average }) => ({
    subject: who,
    count: decisions,
    usual: Math.round(average * 100) / 100,
  }))
}

/** Reads when the journals that were active since then were: each from its first to its last watermark. */
export function readPresence(client: ClickHouseClient, topic: string, sinceMs: number): Promise<Period[]> {
  return readRows<Period>(
    client,
    `SELECT toInt64(toUnixTimestamp64Milli(min(m.first_mark))) AS fromMs, toInt64(toUnixTimestamp64Milli(max(m.mark))) AS toMs
      FROM marks AS m WHERE m.topic = {topic:String}
      GROUP BY m.journal HAVING toMs >= {since:Int64}`,
    { topic, since: sinceMs },
    bounded,
  )
}

/** Whether decisions of that time are known to be missing, or a gap was noticed in it. */
export async function hasGaps(client: ClickHouseClient, topic: string, during: Period): Promise<boolean> {
  const rows = await readRows(
    client,
    `SELECT 1 FROM gaps
      WHERE topic = {topic:String} AND from_ts < fromUnixTimestamp64Milli({to:Int64})
        AND greatest(to_ts, noticed_at) >= fromUnixTimestamp64Milli({from:Int64}) LIMIT 1`,
    { topic, from: during.fromMs, to: during.toMs },
    bounded,
  )
  return rows.length > 0
}
