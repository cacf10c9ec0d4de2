import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { ClickHouseError } from '@clickhouse/client'
import { type ClickHouseClient, readRows } from './connect.ts'
import { processesOf } from './every-replica.ts'

/** One insert block: rows that are inserted and deduplicated as one unit. */
export interface InsertRequest {
  readonly table: string
  /** Lines of JSON objects, each ended by a line break. */
  readonly lines: Buffer
  /**
   * Names exactly these rows: the same token again is dropped, by the table and by every rollup below it. Letters,
   * digits and `:._-` only, at most 200.
   */
  readonly dedupToken: string
  /**
   * Tells this request from others of the same token that may run at the same time: the first one stays. Without it the
   * server refuses such a request while another one runs.
   */
  readonly requestId?: string
  /** How long the server may work on it. An insert that takes longer is ended; a repetition completes it. */
  readonly serverMsMax?: number
  /** W3C's header: the server writes what it did to its own log of spans. */
  readonly traceparent?: string | undefined
  /** Ends the request; the server may go on with what it has. */
  readonly signal?: AbortSignal
}

/**
 * What an insert depends on beyond `statementSettings`, which have it remembered by its token in the table and in every
 * view's target: that it is one block.
 */
const pinned = [
  'max_insert_threads=1',
  'max_insert_block_size=1048449',
  'min_insert_block_size_rows=1048449',
  'min_insert_block_size_bytes=268402944',
  'input_format_parallel_parsing=0',
  // A null is refused for a text, instead of becoming the empty text.
  'input_format_null_as_default=0',
].join(', ')

/** By client: the setting that may forbid deduplication from ClickHouse 26.2 on. Older servers would refuse it. */
const deduplicating = new WeakMap<ClickHouseClient, Promise<string>>()

/** Returns the setting as an insert has it, or nothing for an older server. Asked once for each client. */
function deduplicationOf(client: ClickHouseClient): Promise<string> {
  const known = deduplicating.get(client)
  if (known !== undefined) return known
  const query = "SELECT toString(getSettingOrDefault('deduplicate_insert', '')) AS value"
  const found = readRows<{ value: string }>(client, query).then(([row]) =>
    row === undefined || row.value === '' ? '' : ", deduplicate_insert='enable'",
  )
  deduplicating.set(client, found)
  found.catch(() => deduplicating.delete(client))
  return found
}

const tokenForm = /^[\w:.-]{1,200}$/

/** Returns the query id of a request that inserts; that of a token's prefix is a prefix of all of its requests' ids. */
export const queryIdOf = (dedupToken: string) => `weir:${dedupToken}`

/** Returns rows as lines of an insert. */
export const linesOf = (rows: readonly object[]): Buffer =>
  Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))

/** Resolves when the block is on disk in the table and in its rollups; rejects otherwise. Safe to repeat. */
export async function insertBlock(client: ClickHouseClient, request: InsertRequest): Promise<void> {
  const { table, lines, dedupToken, requestId, serverMsMax, traceparent, signal } = request
  if (!tokenForm.test(dedupToken)) throw new Error(`a deduplication token cannot be ${JSON.stringify(dedupToken)}`)
  const time = serverMsMax === undefined ? '' : `, max_execution_time=${Math.max(1, Math.floor(serverMsMax / 1_000))}`
  const deduplication = await deduplicationOf(client)
  // Not client.insert: for JSONEachRow that takes objects, and would encode again what Kafka holds encoded.
  const answer = await client.exec({
    query: `INSERT INTO ${table} SETTINGS ${pinned}${deduplication}${time}, insert_deduplication_token='${dedupToken}' FORMAT JSONEachRow`,
    values: Readable.from([lines], { objectMode: false }),
    query_id: queryIdOf(dedupToken) + (requestId === undefined ? '' : `:${requestId}`),
    ...(traceparent === undefined ? {} : { http_headers: { traceparent } }),
    ...(signal === undefined ? {} : { abort_signal: signal }),
  })
  answer.stream.resume()
  await finished(answer.stream)
}

/**
 * Whether the server, or any of a cluster's that answers, still works on an insert whose deduplication token begins so.
 * Of one that does not answer Keeper still takes each token once.
 */
export async function isInsertRunning(client: ClickHouseClient, dedupToken: string): Promise<boolean> {
  const settings = client.cluster === undefined ? '' : ' SETTINGS skip_unavailable_shards = 1'
  const query = `SELECT count() > 0 AS busy FROM ${processesOf(client)} WHERE startsWith(query_id, {id:String})${settings}`
  const [row] = await readRows<{ busy: boolean }>(client, query, { id: queryIdOf(dedupToken) })
  return Boolean(row?.busy)
}

/**
 * Codes by which ClickHouse says that the data itself is wrong: parse errors, values out of range, a violated
 * constraint. Everything else (memory, disk, network, a broken view) may go away, and must never turn records into dead
 * letters.
 */
const dataErrorCodes = new Set([6, 25, 26, 27, 33, 38, 41, 53, 69, 72, 117, 131, 321, 376, 469, 636])

/** Whether an insert failed because of its rows, which will fail again. A view that rejects them may be fixed. */
export const isDataError = (error: unknown): boolean =>
  error instanceof ClickHouseError &&
  dataErrorCodes.has(Number(error.code)) &&
  !/while pushing to view/i.test(error.message)
