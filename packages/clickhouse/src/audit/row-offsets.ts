import type { Range } from '@weir/core/audit/ranges.ts'
import type { ClickHouseClient } from '../connect.ts'
import { readRows } from '../read-rows.ts'

/** Offsets of one partition in one incarnation of its topic. */
export interface OffsetRange extends Range {
  readonly table: string
  readonly partition: number
  /** Kafka's id of the topic. */
  readonly topicId: string
}

/** Rows from before the topic id was recorded count as of this incarnation. */
const ofThisIncarnation = "topic_id IN ({topicId:UUID}, toUUID('00000000-0000-0000-0000-000000000000'))"

/** Returns the offsets of a range that are no rows. */
export async function missingOffsets(client: ClickHouseClient, range: OffsetRange): Promise<Range[]> {
  const { table, partition, topicId, from, to } = range
  if (to < from) return []
  const rows = await readRows<{ from: string; to: string }>(
    client,
    `SELECT previous + 1 AS from, place - 1 AS to FROM (
        SELECT place, lagInFrame(place, 1, {from:Int64} - 1) OVER (ORDER BY place ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS previous
        FROM (SELECT DISTINCT toInt64(offset) AS place FROM ${table}
          WHERE partition = {partition:UInt16} AND offset BETWEEN {from:UInt64} AND {to:UInt64} AND ${ofThisIncarnation}
          UNION ALL SELECT {to:Int64} + 1))
      WHERE place > previous + 1 ORDER BY place`,
    { partition, topicId, from, to },
  )
  return rows.map((row) => ({ from: Number(row.from), to: Number(row.to) }))
}

/** Returns which of a journal's numbers in a partition are rows, at whatever offset. */
export async function presentNumbers(
  client: ClickHouseClient,
  table: string,
  journal: string,
  partition: number,
  numbers: readonly number[],
): Promise<ReadonlySet<number>> {
  const rows = await readRows<{ seq: string }>(
    client,
    `SELECT DISTINCT seq FROM ${table}
      WHERE journal = {journal:UUID} AND partition = {partition:UInt16} AND seq IN {numbers:Array(UInt64)}`,
    { journal, partition, numbers },
  )
  return new Set(rows.map(({ seq }) => Number(seq)))
}
