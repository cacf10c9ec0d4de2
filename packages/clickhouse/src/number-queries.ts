import { type ClickHouseClient, readRows } from './connect.ts'

/** One partition of one topic incarnation: the offsets of a topic that is deleted and created again begin at 0. */
export interface TopicIdPartition {
  /** `weir.decisions.v1` or `weir.outcomes.v1`. */
  readonly topic: string
  /** Kafka's id of the topic, a UUID. */
  readonly topicId: string
  readonly partition: number
}

/** The raw table that a topic's records become rows of. */
const rawTables: Readonly<Record<string, string>> = { 'weir.decisions.v1': 'decisions', 'weir.outcomes.v1': 'outcomes' }

interface JournalRow {
  readonly journal: string
  readonly seq: string
  readonly known: boolean
  readonly straddles: boolean
}

const inPartition = 'topic = {topic:String} AND partition = {partition:UInt16}'
const ofAnotherIncarnation = 'topic_id != {topicId:UUID}'

/**
 * Reads the highest sequence number of every journal among the partition's rows before an offset, and among all rows of
 * the topic's other incarnations. The rows from that offset on are left out even if they are there. Reads one row per
 * block, and raw rows only where a block that was inserted reaches over the offset.
 */
export async function readNumbers(
  client: ClickHouseClient,
  partition: TopicIdPartition,
  beforeOffset: bigint,
): Promise<Map<string, number>> {
  const params = { ...partition, before: beforeOffset.toString() }
  const isBefore = `(${ofAnotherIncarnation} OR to_offset < {before:UInt64})`
  const journals = await readRows<JournalRow>(
    client,
    `SELECT journal, maxIf(to_seq, ${isBefore}) AS seq, countIf(${isBefore}) > 0 AS known,
       countIf(NOT ${isBefore} AND from_offset < {before:UInt64}) > 0 AS straddles
     FROM numbers WHERE ${inPartition} GROUP BY journal`,
    params,
  )
  const highest = new Map<string, number>()
  for (const { journal, seq, known } of journals) if (known) highest.set(journal, Number(seq))

  const cut = journals.filter(({ straddles }) => straddles).map(({ journal }) => journal)
  const table = rawTables[partition.topic]
  if (cut.length === 0 || table === undefined) return highest
  const rows = await readRows<JournalRow>(
    client,
    `SELECT r.journal AS journal, max(r.seq) AS seq FROM ${table} AS r
     WHERE r.journal IN {cut:Array(UUID)} AND r.partition = {partition:UInt16} AND r.topic_id = {topicId:UUID}
       AND r.offset < {before:UInt64} GROUP BY journal`,
    { ...params, cut },
  )
  for (const { journal, seq } of rows) highest.set(journal, Math.max(Number(seq), highest.get(journal) ?? 0))
  return highest
}

/** Reads the last offset of the partition that is a row, in this incarnation of the topic; undefined when none is. */
export async function readLastOffset(
  client: ClickHouseClient,
  partition: TopicIdPartition,
): Promise<bigint | undefined> {
  const [row] = await readRows<{ last: string; blocks: string }>(
    client,
    `SELECT max(to_offset) AS last, count() AS blocks FROM numbers WHERE ${inPartition} AND NOT ${ofAnotherIncarnation}`,
    { ...partition },
  )
  return row === undefined || row.blocks === '0' ? undefined : BigInt(row.last)
}
