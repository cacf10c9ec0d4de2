import { insertBlock } from '../insert.ts'
import type { DoubtedBlock, DoubtedRow } from './doubted-block.ts'
import type { MendConnection } from './mend-connection.ts'

/** Each attempt has a token of its own, for that of the one before may be remembered in the same way. More than one needs two kills. */
const attemptsMax = 5

const inRange = `partition = {partition:UInt16} AND topic_id = {topicId:UUID} AND offset BETWEEN {from:UInt64} AND {to:UInt64}
  AND ts BETWEEN fromUnixTimestamp64Milli({fromMs:Int64}, 'UTC') AND fromUnixTimestamp64Milli({toMs:Int64}, 'UTC')`

/** From the smallest to the largest of each; without spreading, for a block may have more rows than a call takes arguments. */
function rangeOf({ topic, topicId, partition }: DoubtedBlock, rows: readonly DoubtedRow[]) {
  let [from, to, fromMs, toMs] = [Number.MAX_SAFE_INTEGER, 0, Number.MAX_SAFE_INTEGER, 0]
  for (const { offset, tsMs } of rows) {
    from = Math.min(from, offset)
    to = Math.max(to, offset)
    fromMs = Math.min(fromMs, tsMs)
    toMs = Math.max(toMs, tsMs)
  }
  return { topic, topicId, partition, from, to, fromMs, toMs }
}

async function timesByOffset(connection: MendConnection, table: string, range: object): Promise<Map<number, number>> {
  const rows = await connection.ask<{ offset: string; times: string }>(
    `SELECT offset, count() AS times FROM ${table} WHERE ${inRange} GROUP BY offset`,
    { ...range },
  )
  return new Map(rows.map(({ offset, times }) => [Number(offset), Number(times)]))
}

/**
 * Each offset of the block is a row, once; gives how many were not. What is inserted again goes into the rollups again, whether
 * they lacked it or not: they are to be compared afterwards.
 */
export async function mendRaw(
  connection: MendConnection,
  block: DoubtedBlock,
  rows: readonly DoubtedRow[],
): Promise<number> {
  const { table, token } = block
  const range = rangeOf(block, rows)
  let wrong = 0
  for (let attempt = 1; ; attempt += 1) {
    let times = await timesByOffset(connection, table, range)
    const isTwice = [...times.values()].some((count) => count > 1)
    // Equal rows cannot be told apart: all of them go, and come again.
    if (isTwice) {
      await connection.write(`DELETE FROM ${table} WHERE ${inRange} SETTINGS lightweight_deletes_sync = 2`, range)
      times = new Map()
    }
    const gone = rows.filter(({ offset }) => !times.has(offset))
    if (gone.length === 0) break
    if (attempt > attemptsMax) throw new Error(`${table} does not keep ${gone.length} rows of ${token}`)
    wrong = Math.max(wrong, gone.length)
    for (const [month, lost] of Map.groupBy(gone, (row) => row.month)) {
      connection.refuseIfStale()
      const lines = Buffer.from(lost.map(({ line }) => `${line}\n`).join(''))
      const { client, signal } = connection
      const again = { table, lines, token: `${token}:mend:${month}:${attempt}` }
      await insertBlock(client, signal === undefined ? again : { ...again, signal })
    }
  }
  // Rows of weir.numbers only tell the smallest and the largest: one too many does no harm.
  await connection.write(
    `INSERT INTO numbers (topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq)
      SELECT {topic:String}, r.topic_id, r.partition, r.journal, min(r.offset), max(r.offset), min(r.seq), max(r.seq)
      FROM ${table} AS r WHERE ${inRange} GROUP BY ALL SETTINGS insert_deduplicate = 0, async_insert = 0`,
    range,
  )
  return wrong
}
