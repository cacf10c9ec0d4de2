import { randomUUID } from 'node:crypto'
import { type ClickHouseClient, readRows } from './connect.ts'
import { insertBlock, linesOf } from './insert.ts'

/** A row of `weir.policy_history`; the migration says what its columns mean. */
export interface PolicyHistoryRow {
  readonly topic: string
  readonly topic_id: string
  readonly offset: string
  readonly change: string
  /** `YYYY-MM-DD hh:mm:ss.SSS`, UTC. */
  readonly at: string
  readonly kind: string
  readonly name: string
  readonly body: string
}

/** A policy topic as it is now: one that was made again has another id. */
export interface HistoryTopic {
  readonly topic: string
  readonly topicId: string
}

/** How far the history of a topic goes. */
export interface HistoryEnd {
  /** The offset after its last row; 0 if it has none. */
  readonly next: bigint
  /** The last record that ended a change. */
  readonly lastChange: { readonly offset: bigint; readonly id: string } | undefined
}

const changeKinds = "('change', 'overtaken')"
const ofTopic = 'h.topic = {topic:String} AND h.topic_id = {topicId:UUID}'

/** Reads how far the history of a topic goes. Rejects with ClickHouse's error. */
export async function readHistoryEnd(client: ClickHouseClient, { topic, topicId }: HistoryTopic): Promise<HistoryEnd> {
  const [row] = await readRows<{ rows: string; last: string; changes: string; offset: string; id: string }>(
    client,
    `SELECT count() AS rows, max(h.offset) AS last, countIf(h.kind IN ${changeKinds}) AS changes,
       maxIf(h.offset, h.kind IN ${changeKinds}) AS offset, toString(argMaxIf(h.change, h.offset, h.kind IN ${changeKinds})) AS id
     FROM policy_history AS h WHERE ${ofTopic}`,
    { topic, topicId },
  )
  if (row === undefined || row.rows === '0') return { next: 0n, lastChange: undefined }
  const lastChange = row.changes === '0' ? undefined : { offset: BigInt(row.offset), id: row.id }
  return { next: BigInt(row.last) + 1n, lastChange }
}

/** Inserts rows of one topic, ascending by offset. Rows that are there already stay one row each. */
export async function insertHistory(client: ClickHouseClient, rows: readonly PolicyHistoryRow[]): Promise<void> {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return
  const dedupToken = `policy:${first.topic_id}:${first.offset}-${last.offset}:${rows.length}`
  // Several consoles insert the same rows at the same time.
  await insertBlock(client, { table: 'policy_history', lines: linesOf(rows), dedupToken, requestId: randomUUID() })
}
