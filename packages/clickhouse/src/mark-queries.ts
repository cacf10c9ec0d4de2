import { type Completeness, completeThrough, type JournalWatermark } from '@weir/core/usage/complete-through.ts'
import { type ClickHouseClient, countsAsNumbers, readRows } from './connect.ts'

/** Some hundred open journals in some dozens of partitions; those silent for longest are left out first. */
const marksMax = 20_000

const times = `toInt64(toUnixTimestamp64Milli(min(m.first_mark))) AS firstMarkMs,
  toInt64(toUnixTimestamp64Milli(max(m.mark)))`

/** The journals that have not ended in all partitions. */
const openJournals = `SELECT journal FROM
  (SELECT journal, partition, max(m.end) AS is_end FROM marks AS m WHERE m.topic = {topic:String} GROUP BY journal, partition)
  GROUP BY journal
  HAVING min(is_end) = 0 OR count() < (SELECT uniqExact(m.partition) FROM marks AS m WHERE m.topic = {topic:String})`

/** Every partition, as of no journal, and those of every open journal. One statement: each question waits for it. */
const watermarks = `SELECT '' AS journal, partition, ${times} AS markMs, false AS isEnd
  FROM marks AS m WHERE m.topic = {topic:String} GROUP BY partition
  UNION ALL
  SELECT * FROM (SELECT toString(journal), partition, ${times} AS markMs, max(m.end) FROM marks AS m
    WHERE m.topic = {topic:String} AND m.journal IN (${openJournals})
    GROUP BY journal, partition ORDER BY max(m.mark) DESC LIMIT ${marksMax})`

/**
 * Reads how far a topic's rows are complete. Call it before reading the rows that it is to hold for: rows that are
 * inserted between the two only add to them. Rejects with ClickHouse's error.
 */
export async function readCompleteness(client: ClickHouseClient, topic: string): Promise<Completeness> {
  const more = { clickhouse_settings: countsAsNumbers }
  const all = await readRows<JournalWatermark>(client, watermarks, { topic }, more)
  const partitions = all.filter(({ journal }) => journal === '')
  return completeThrough(
    partitions.map(({ partition, firstMarkMs, markMs }) => ({ partition, firstMarkMs, lastMarkMs: markMs })),
    all.filter(({ journal }) => journal !== ''),
  )
}

/** Gaps of one answer: who sees so many looks at all of them in SQL. */
const gapsMax = 100

/** Something that is missing for good. Times are 0 where they are not known. */
export interface Gap {
  readonly cause: string
  readonly partition: number
  /** Decisions, as far as known; else records. */
  readonly count: string
  readonly fromMs: number
  readonly toMs: number
}

/** Reads what is missing and may be of a span of time, the last noticed first. Rejects with ClickHouse's error. */
export const readGaps = (
  client: ClickHouseClient,
  topic: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<Gap[]> =>
  readRows<Gap>(
    client,
    `SELECT cause, partition, toString(g.count) AS count,
       toUnixTimestamp64Milli(g.from_ts) AS fromMs, toUnixTimestamp64Milli(g.to_ts) AS toMs
     FROM gaps AS g FINAL
     WHERE g.topic = {topic:String} AND g.from_ts < fromUnixTimestamp64Milli({to:Int64})
       AND (g.to_ts >= fromUnixTimestamp64Milli({from:Int64}) OR toUnixTimestamp64Milli(g.to_ts) = 0)
     ORDER BY g.noticed_at DESC, g.partition, g.from_seq, g.from_offset LIMIT ${gapsMax}`,
    { topic, from: fromMs, to: toMs },
    { clickhouse_settings: countsAsNumbers },
  )

/** Causes times topics; there are five and two. */
const gapKindsMax = 100

/** Reads what was noticed to be missing since then, by why and where. Rejects with ClickHouse's error. */
export const readRecentGaps = (
  client: ClickHouseClient,
  sinceMs: number,
): Promise<{ readonly cause: string; readonly topic: string; readonly count: string }[]> =>
  readRows(
    client,
    `SELECT cause, topic, toString(sum(g.count)) AS count FROM gaps AS g FINAL
     WHERE noticed_at >= fromUnixTimestamp64Milli({since:Int64})
     GROUP BY cause, topic ORDER BY cause, topic LIMIT ${gapKindsMax}`,
    { since: sinceMs },
  )
