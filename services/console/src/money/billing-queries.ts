import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import { QuestionBoundMet } from '@weir/clickhouse/question-bounds.ts'
import { withinReach, withinTime } from '@weir/clickhouse/within-reach.ts'
import type { CountedOffset, ExportCursor } from '@weir/core/prices/export-cursor.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'
import type { UsedHour } from '@weir/core/prices/rated-usage.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** Units in 128 bits, as everywhere: text keeps all digits of both. */
const usedSql = (within: string) => `
  SELECT route, toString(sum(toInt128(cost))) AS units, toString(sum(count)) AS decisions
  FROM usage_15m
  WHERE ${within} AND subject = {subject:String} AND outcome = 'allow'
    AND ${withinTime('ts')}
  GROUP BY route ORDER BY route`

/**
 * Returns what a subject's allowed decisions used, by route, from the rollup by quarter hours: the period begins and
 * ends with one, as days do in every time zone of today. Rejects with ClickHouse's error.
 */
export async function askPeriodUsage(
  client: ClickHouseClient,
  reach: Reach,
  subject: string,
  { fromMs, toMs }: Period,
): Promise<readonly RouteUsage[]> {
  const { sql, params } = withinReach(reach, 'subject')
  const asked = { ...params, subject, from: fromMs, to: toMs }
  const rows = await readRows<Record<keyof RouteUsage, string>>(client, usedSql(sql), asked)
  return rows.map(({ route, units, decisions }) => ({ route, units: BigInt(units), decisions: BigInt(decisions) }))
}

const monthSql = `
  SELECT subject, route, toString(sum(toInt128(cost))) AS units, toString(sum(count)) AS decisions
  FROM usage_15m
  WHERE outcome = 'allow' AND ${withinTime('ts')}
  GROUP BY subject, route LIMIT {rowsMax:UInt32}`
/** Customers times their routes, in memory at once: some 200 MB. */
const monthRowsMax = 1_000_000

/** Returns what every subject's allowed decisions used in a period, by route. Rejects with ClickHouse's error. */
export async function askMonthUsage(
  client: ClickHouseClient,
  { fromMs: from, toMs: to }: Period,
): Promise<ReadonlyMap<string, readonly RouteUsage[]>> {
  const asked = { from, to, rowsMax: monthRowsMax + 1 }
  const rows = await readRows<Record<keyof RouteUsage | 'subject', string>>(client, monthSql, asked)
  if (rows.length > monthRowsMax) throw new QuestionBoundMet('too-large', undefined)
  const used = new Map<string, RouteUsage[]>()
  for (const { subject, route, units, decisions } of rows) {
    const one = { route, units: BigInt(units), decisions: BigInt(decisions) }
    const known = used.get(subject)
    if (known === undefined) used.set(subject, [one])
    else known.push(one)
  }
  return used
}

const countedSql = `
  SELECT toString(topic_id) AS topic_id, toUInt32(partition) AS partition, toString(max(offset)) AS offset
  FROM decisions WHERE ts >= fromUnixTimestamp64Milli({from:Int64})
  GROUP BY topic_id, partition ORDER BY topic_id, partition`

/**
 * The same on a cluster, whose replicas get a row each in their own time: of what was inserted longer ago than any
 * replica is behind that is asked.
 */
const clusterCountedSql = `
  SELECT toString(topic_id) AS topic_id, toUInt32(partition) AS partition, toString(max(to_offset)) AS offset
  FROM numbers WHERE topic = 'weir.decisions.v1' AND received_at < now() - INTERVAL 15 SECOND
  GROUP BY topic_id, partition ORDER BY topic_id, partition`

/**
 * Returns the last inserted record of each partition, of those since a time: no older one is in an export that begins
 * there. Metering inserts a partition's records in their order.
 */
export async function readCountedOffsets(client: ClickHouseClient, fromMs: number): Promise<readonly CountedOffset[]> {
  const query = client.cluster === undefined ? countedSql : clusterCountedSql
  const rows = await readRows<{ topic_id: string; partition: number; offset: string }>(client, query, { from: fromMs })
  return rows.map(({ topic_id, partition, offset }) => [topic_id, partition, offset])
}

const upTo = (
  cursor: 'since' | 'until',
) => `toInt64(d.offset) <= transform(concat(toString(d.topic_id), '/', toString(d.partition)),
  {${cursor}Partitions:Array(String)}, arrayMap(one -> toInt64(one), {${cursor}Offsets:Array(String)}), toInt64(-1))`

/** Whole groups of a subject and an hour, however many routes they have. */
const exportSql = `
  SELECT d.subject AS subject, toInt64(toUnixTimestamp(toStartOfHour(d.ts))) * 1000 AS hour_ms, d.route AS route,
    toString(sum(toInt128(d.cost) * d.count + d.adjustment)) AS units, toString(toInt64(sum(d.count)) + sum(d.count_adjustment)) AS decisions
  FROM decisions AS d
  WHERE d.outcome = 'allow' AND ${upTo('until')}
    AND ${withinTime('d.ts')}
    AND (d.ts >= fromUnixTimestamp64Milli({new:Int64}) OR NOT ${upTo('since')})
    AND (d.subject > {subject:String} OR d.subject = {subject:String} AND d.ts >= fromUnixTimestamp64Milli({after:Int64}))
  GROUP BY subject, hour_ms, route ORDER BY subject, hour_ms LIMIT {rowsMax:UInt32} WITH TIES`

const offsetsOf = (name: string, { counted = [] }: Partial<ExportCursor>) => ({
  [`${name}Partitions`]: counted.map(([topicId, partition]) => `${topicId}/${partition}`),
  [`${name}Offsets`]: counted.map(([, , offset]) => offset),
})

/** Which hours an export has: those that are new since another one, and what came late for older ones. */
export interface ExportQuestion {
  readonly since: ExportCursor | undefined
  readonly until: ExportCursor
  /** The last group of the page before. */
  readonly after: Pick<UsedHour, 'subject' | 'hourMs'> | undefined
  /** At least so many rows of subject, hour and route, if there are. */
  readonly rowsMax: number
}

const hourMs = 3_600_000
/** What comes later than this after its hour is in no export: a query reads as far back each time. */
const correctedForMs = 62 * 24 * hourMs

/** Returns from when on records are in an export: the new hours, and older ones that may be corrected. */
export const exportStart = (since: ExportCursor | undefined, { fromMs, toMs }: Period): number =>
  Math.max(fromMs, Math.min(since?.toMs ?? fromMs, toMs - correctedForMs))

/**
 * Returns what the allowed decisions of each subject used in each hour, by route, of the records up to a cursor: the
 * same at every time, for as long as the raw rows are kept. Rejects with ClickHouse's error.
 */
export async function askExport(
  client: ClickHouseClient,
  { since, until, after, rowsMax }: ExportQuestion,
): Promise<readonly UsedHour[]> {
  const position = { subject: after?.subject ?? '', after: after === undefined ? 0 : after.hourMs + hourMs }
  const offsets = { ...offsetsOf('since', since ?? {}), ...offsetsOf('until', until) }
  type Row = Record<keyof RouteUsage | 'subject' | 'hour_ms', string>
  const asked = {
    ...offsets,
    ...position,
    from: exportStart(since, until),
    new: since?.toMs ?? 0,
    to: until.toMs,
    rowsMax,
  }
  const rows = await readRows<Row>(client, exportSql, asked)
  return [...Map.groupBy(rows, ({ subject, hour_ms }) => `${hour_ms} ${subject}`).values()].map((group) => ({
    subject: group[0]?.subject ?? '',
    hourMs: Number(group[0]?.hour_ms),
    usage: group.map(({ route, units, decisions }) => ({ route, units: BigInt(units), decisions: BigInt(decisions) })),
  }))
}
