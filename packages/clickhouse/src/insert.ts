import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from './connect.ts'

/** One block of rows, whole or not at all. */
export interface Block {
  readonly table: string
  /** Lines of JSON objects, each ended by a line break. */
  readonly lines: Buffer
  /** Names exactly these rows: the same token again is dropped, by the table and by every rollup below it. */
  readonly token: string
}

/**
 * What an insert depends on, pinned here because servers differ in their defaults: one synchronous block, remembered by its
 * token in the table and in every view's target.
 */
const settings = {
  async_insert: 0,
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  max_insert_threads: '1',
  max_insert_block_size: '1048449',
  min_insert_block_size_rows: '1048449',
  min_insert_block_size_bytes: '268402944',
  input_format_parallel_parsing: 0,
  // A record field that this version does not know must not stop the pipeline; the record itself stays in Kafka.
  input_format_skip_unknown_fields: 1,
} as const

/** Resolves when ClickHouse has the block on disk in the table and in its rollups; rejects otherwise. Safe to repeat. */
export async function insertBlock(client: ClickHouseClient, block: Block): Promise<void> {
  // Not client.insert: for JSONEachRow that takes objects, and would encode again what Kafka holds encoded.
  const answer = await client.exec({
    query: `INSERT INTO ${block.table} FORMAT JSONEachRow`,
    values: Readable.from([block.lines], { objectMode: false }),
    clickhouse_settings: { ...settings, insert_deduplication_token: block.token },
  })
  answer.stream.resume()
  await finished(answer.stream)
}

/**
 * Codes by which ClickHouse says that the data itself is wrong: parse errors, values out of range, a violated constraint.
 * Everything else (memory, disk, network, a broken view) may go away, and must never turn records into dead letters.
 */
const dataErrorCodes = new Set([
  '6',
  '26',
  '27',
  '33',
  '38',
  '41',
  '53',
  '69',
  '72',
  '117',
  '131',
  '321',
  '376',
  '469',
  '636',
])

/** Whether an insert failed because of its rows, so that the same rows will fail again. */
export const isDataError = (error: unknown): boolean =>
  error instanceof ClickHouseError && dataErrorCodes.has(error.code)
