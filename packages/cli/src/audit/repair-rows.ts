import { randomUUID } from 'node:crypto'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError } from '@weir/clickhouse/insert.ts'
import type { MissingRecord, MissingRecords } from './audit-kafka.ts'

/** Of one insert: some 10 MB, as metering's own blocks. */
const rowsPerInsert = 20_000

export interface RepairedRows {
  readonly inserted: number
  /** Records that ClickHouse refuses, with its words for the first. */
  readonly refused: number
  readonly why: string
}

/** As metering makes rows: the record's own bytes, with its place in Kafka before the closing brace. */
function linesOf(records: readonly MissingRecord[], { partition, topicId }: MissingRecords): Buffer {
  return Buffer.concat(
    records.flatMap(({ value, offset }) => [
      value.subarray(0, -1),
      Buffer.from(`,"topic_id":"${topicId}","partition":${partition},"offset":${offset}}\n`, 'latin1'),
    ]),
  )
}

/**
 * Inserts records that should be rows. Their rollups get them too, whether they lacked them or not: compare those afterwards. The
 * token is new each time: rows that were inserted once and deleted since must not count as a repeat.
 */
export async function insertMissing(client: ClickHouseClient, missing: MissingRecords): Promise<RepairedRows> {
  const { table } = missing.metered
  const run = randomUUID()
  let result: RepairedRows = { inserted: 0, refused: 0, why: '' }
  const insert = async (records: readonly MissingRecord[]): Promise<void> => {
    const [first] = records
    if (first === undefined) return
    const token = `repair:${run}:${missing.partition}:${first.offset}-${records.at(-1)?.offset}`
    try {
      await insertBlock(client, { table, token, lines: linesOf(records, missing) })
      result = { ...result, inserted: result.inserted + records.length }
    } catch (error) {
      if (!isDataError(error)) throw error
      if (records.length === 1) {
        const why = result.why || (error instanceof Error ? error.message : String(error))
        result = { ...result, refused: result.refused + 1, why }
        return
      }
      const middle = records.length >> 1
      await insert(records.slice(0, middle))
      await insert(records.slice(middle))
    }
  }
  for (let at = 0; at < missing.records.length; at += rowsPerInsert) {
    await insert(missing.records.slice(at, at + rowsPerInsert))
  }
  return result
}
