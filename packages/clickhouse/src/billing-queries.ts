import type { Period } from '@weir/core/prices/forecast.ts'
import type { CutoffPlace } from '@weir/core/prices/invoice.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { type ClickHouseClient, readRows } from './connect.ts'
import { withinReach } from './within-reach.ts'

/** Units in 128 bits, as everywhere: text keeps all digits of both. */
const usedSql = (within: string) => `
  SELECT route, toString(sum(toInt128(cost))) AS units, toString(sum(count)) AS decisions
  FROM usage_15m
  WHERE ${within} AND subject = {subject:String} AND outcome = 'allow'
    AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})
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

/** A cut-off has a place for each partition of each life of the topic. */
const cutoffSql = `
  SELECT toString(topic_id) AS topic_id, toString(partition) AS partition, toString(max(offset)) AS offset
  FROM decisions GROUP BY topic_id, partition ORDER BY topic_id, partition`

/**
 * The same on a cluster, whose replicas get a row each in their own time: of what was inserted longer ago than any
 * replica is behind that is asked.
 */
const clusterCutoffSql = `
  SELECT toString(topic_id) AS topic_id, toString(partition) AS partition, toString(max(to_offset)) AS offset
  FROM numbers WHERE topic = 'weir.decisions.v1' AND received_at < now() - INTERVAL 15 SECOND
  GROUP BY topic_id, partition ORDER BY topic_id, partition`

/** Returns the last inserted record of each partition. Metering inserts a partition's records in their order. */
export const readCutoff = (client: ClickHouseClient): Promise<CutoffPlace[]> =>
  readRows<CutoffPlace>(client, client.cluster === undefined ? cutoffSql : clusterCutoffSql)

const usedUpToSql = `
  SELECT route, toString(sum(toInt128(cost) * count + adjustment)) AS units, toString(sum(count)) AS decisions
  FROM decisions
  WHERE subject = {subject:String} AND outcome = 'allow'
    AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})
    AND toInt64(offset) <= transform(concat(toString(topic_id), '/', toString(partition)),
      {places:Array(String)}, arrayMap(one -> toInt64(one), {offsets:Array(String)}), toInt64(-1))
  GROUP BY route ORDER BY route`

/**
 * Returns what a subject's allowed decisions used in a period by the records up to a cut-off: the same at every time,
 * for as long as the raw rows are kept. Rejects with ClickHouse's error.
 */
export async function askUsageUpTo(
  client: ClickHouseClient,
  subject: string,
  { fromMs, toMs }: Period,
  cutoff: readonly CutoffPlace[],
): Promise<readonly RouteUsage[]> {
  const places = cutoff.map(({ topic_id, partition }) => `${topic_id}/${partition}`)
  const params = { subject, from: fromMs, to: toMs, places, offsets: cutoff.map(({ offset }) => offset) }
  const rows = await readRows<Record<keyof RouteUsage, string>>(client, usedUpToSql, params)
  return rows.map(({ route, units, decisions }) => ({ route, units: BigInt(units), decisions: BigInt(decisions) }))
}

/** Gaps of decisions are some; a period with more is not one to close. */
const gapsMax = 1_000

/** Returns what is missing of a period, in words. A gap of which no time is known may be of any. */
export async function askGaps(client: ClickHouseClient, topic: string, { fromMs, toMs }: Period): Promise<string[]> {
  const rows = await readRows<{ words: string }>(
    client,
    `SELECT concat(cause, ' in partition ', toString(partition), ': ', toString(sum(count)), ' from ',
       toString(min(from_ts)), ' to ', toString(max(to_ts)), ' UTC') AS words
     FROM gaps FINAL
     WHERE topic = {topic:String} AND from_ts < fromUnixTimestamp64Milli({to:Int64})
       AND (to_ts >= fromUnixTimestamp64Milli({from:Int64}) OR toUnixTimestamp64Milli(to_ts) = 0)
     GROUP BY cause, partition ORDER BY cause, partition LIMIT ${gapsMax}`,
    { topic, from: fromMs, to: toMs },
  )
  return rows.map(({ words }) => words)
}
