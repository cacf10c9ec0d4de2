import {
  type Completeness,
  completeThrough,
  type JournalWatermark,
  type WatermarkedPartition,
} from '@weir/core/usage/complete-through.ts'
import { type ClickHouseClient, readRows } from './connect.ts'

/** Some hundred open journals in some dozens of partitions; those silent for longest are left out first. */
const marksMax = 20_000

interface PartitionRow {
  readonly partition: number
  readonly first_ms: string
  readonly last_ms: string
}

interface MarkRow extends PartitionRow {
  readonly journal: string
  readonly is_end: boolean
}

const times = 'toUnixTimestamp64Milli(min(m.first_mark)) AS first_ms, toUnixTimestamp64Milli(max(m.mark)) AS last_ms'

/** The journals that have not ended in all partitions. */
const openJournals = `SELECT journal FROM
  (SELECT journal, partition, max(m.end) AS is_end FROM marks AS m WHERE m.topic = {topic:String} GROUP BY journal, partition)
  GROUP BY journal HAVING min(is_end) = 0 OR count() < {partitions:UInt32}`

/**
 * Reads how far a topic's rows are complete. Call it before reading the rows that it is to hold for: rows that are
 * inserted between the two only add to them. Rejects with ClickHouse's error.
 */
export async function readCompleteness(client: ClickHouseClient, topic: string): Promise<Completeness> {
  const known = await readRows<PartitionRow>(
    client,
    `SELECT partition, ${times} FROM marks AS m WHERE m.topic = {topic:String} GROUP BY partition`,
    { topic },
  )
  const open = await readRows<MarkRow>(
    client,
    `SELECT journal, partition, ${times}, max(m.end) AS is_end FROM marks AS m
     WHERE m.topic = {topic:String} AND m.journal IN (${openJournals})
     GROUP BY journal, partition ORDER BY max(m.mark) DESC LIMIT ${marksMax}`,
    { topic, partitions: known.length },
  )
  const partitions = known.map(
    ({ partition, first_ms, last_ms }): WatermarkedPartition => ({
      partition,
      firstMarkMs: Number(first_ms),
      lastMarkMs: Number(last_ms),
    }),
  )
  const marks = open.map(
    ({ journal, partition, first_ms, last_ms, is_end }): JournalWatermark => ({
      journal,
      partition,
      firstMarkMs: Number(first_ms),
      markMs: Number(last_ms),
      isEnd: is_end,
    }),
  )
  return completeThrough(partitions, marks)
}
