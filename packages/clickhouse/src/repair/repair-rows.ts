import { type ClickHouseClient, readRows } from '../connect.ts'
import { isDataError } from '../insert.ts'
import type { TopicIdPartition } from '../number-queries.ts'
import type { RepairSession } from './repair-session.ts'

/** A row as a raw table should have it: one JSON object, and its offset in Kafka. */
export interface RawRow {
  readonly offset: number
  readonly line: string | Buffer
}

/** Rows of one insert: some 10 MB, as metering's own blocks. */
const rowsPerInsert = 20_000

const lineBreak = Buffer.from('\n')
/** The month of a row's time. Our encoders write `ts` before any field that could have a member of that name. */
const monthOf = ({ line }: RawRow) => /"ts":"(\d{4}-\d\d)/.exec(line.toString())?.[1]

/**
 * Inserts rows that a raw table lacks, in their order; halves what ClickHouse refuses until each bad row is alone. Each
 * month is inserted on its own: ClickHouse takes rows of at most 100 of the table's partitions in one insert. The
 * rollups get the rows too, whether they lacked them or not: compare those afterwards. `run` is new for each attempt,
 * because rows that were inserted once and deleted since must not count as a repeat. Returns how many rows were
 * inserted, how many ClickHouse refuses, and its words for the first of them.
 */
export async function insertRows(session: RepairSession, table: string, rows: readonly RawRow[], run: string) {
  const result = { inserted: 0, refused: 0, why: '' }
  const insert = async (some: readonly RawRow[]): Promise<void> => {
    const lines = Buffer.concat(some.flatMap(({ line }) => [Buffer.from(line), lineBreak]))
    try {
      await session.insert(table, lines, `${run}:${some[0]?.offset}-${some.at(-1)?.offset}`)
      result.inserted += some.length
    } catch (error) {
      if (!isDataError(error)) throw error
      if (some.length === 1) {
        result.refused += 1
        result.why ||= error instanceof Error ? error.message : String(error)
        return
      }
      const middle = some.length >> 1
      await insert(some.slice(0, middle))
      await insert(some.slice(middle))
    }
  }
  for (const ofMonth of Map.groupBy(rows, monthOf).values()) {
    for (let at = 0; at < ofMonth.length; at += rowsPerInsert) await insert(ofMonth.slice(at, at + rowsPerInsert))
  }
  return result
}

/** The raw rows of one block. */
export interface BlockRows extends TopicIdPartition {
  readonly table: string
  /** Never empty. */
  readonly rows: readonly (RawRow & { readonly tsMs: number })[]
}

/** ClickHouse may remember an attempt's token without its rows, so each has another. Two need two kills. */
const attemptsMax = 5

const inRange = `partition = {partition:UInt16} AND topic_id = {topicId:UUID} AND offset BETWEEN {from:UInt64} AND {to:UInt64}
  AND ts BETWEEN fromUnixTimestamp64Milli({fromMs:Int64}, 'UTC') AND fromUnixTimestamp64Milli({toMs:Int64}, 'UTC')`

/** From the smallest to the largest of each; a block may have more rows than a call accepts arguments. */
function rangeOf({ topic, topicId, partition, rows }: BlockRows) {
  let [from, to, fromMs, toMs] = [Number.MAX_SAFE_INTEGER, 0, Number.MAX_SAFE_INTEGER, 0]
  for (const { offset, tsMs } of rows) {
    from = Math.min(from, offset)
    to = Math.max(to, offset)
    fromMs = Math.min(fromMs, tsMs)
    toMs = Math.max(toMs, tsMs)
  }
  return { topic, topicId, partition, from, to, fromMs, toMs }
}

/** Whether the raw table has any row of a partition's part of a block. */
export async function hasBlockRows(client: ClickHouseClient, block: BlockRows): Promise<boolean> {
  const found = await readRows(client, `SELECT 1 FROM ${block.table} WHERE ${inRange} LIMIT 1`, rangeOf(block))
  return found.length > 0
}

/** Makes the raw table have each row of a block once. Returns how many were missing or there twice. */
export async function repairBlockRows(session: RepairSession, block: BlockRows): Promise<number> {
  const { table, rows } = block
  const range = rangeOf(block)
  let wrong = 0
  for (let attempt = 1; ; attempt += 1) {
    const found = await session.query<{ offset: string; times: string }>(
      `SELECT offset, count() AS times FROM ${table} WHERE ${inRange} GROUP BY offset`,
      range,
    )
    let present = new Set(found.map(({ offset }) => Number(offset)))
    // Equal rows cannot be told apart: all of them are deleted and inserted again.
    if (found.some(({ times }) => Number(times) > 1)) {
      await session.command(`DELETE FROM ${table} WHERE ${inRange} SETTINGS lightweight_deletes_sync = 2`, range)
      present = new Set()
    }
    const missing = rows.filter(({ offset }) => !present.has(offset))
    if (missing.length === 0) break
    if (attempt > attemptsMax) throw new Error(`${table} does not keep ${missing.length} rows of a block`)
    wrong = Math.max(wrong, missing.length)
    const { refused, why } = await insertRows(session, table, missing, String(attempt))
    if (refused > 0) throw new Error(`${table} refuses ${refused} rows of a block: ${why}`)
  }
  // Only the smallest and the largest of weir.numbers' rows count: one row too many does no harm.
  await session.command(
    `INSERT INTO numbers (topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq)
      SELECT {topic:String}, r.topic_id, r.partition, r.journal, min(r.offset), max(r.offset), min(r.seq), max(r.seq)
      FROM ${table} AS r WHERE ${inRange} GROUP BY ALL SETTINGS insert_deduplicate = 0, async_insert = 0`,
    range,
  )
  return wrong
}
