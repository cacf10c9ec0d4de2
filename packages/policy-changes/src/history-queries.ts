import { randomUUID } from 'node:crypto'
import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import type { HistoryEntity } from '@weir/explain/policy-facts.ts'

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
type HistoryTopic = Pick<PolicyHistoryRow, 'topic' | 'topic_id'>

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
export async function readHistoryEnd(
  client: ClickHouseClient,
  { topic, topic_id: topicId }: HistoryTopic,
): Promise<HistoryEnd> {
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

/** What the history has of the policy at one time. */
export interface PolicyAt {
  /** The last change that processes had taken over. */
  readonly change: { readonly id: string; readonly offset: number; readonly atMs: number }
  /** Whether it is the change that the decision's record names. */
  readonly isNamed: boolean
  /** Limits, plans, routes and price lists, and the subjects that were asked for, as they were then. */
  readonly entities: readonly HistoryEntity[]
}

/** Changes that a process takes over within this time of its own clock are those of before. */
const clockSkewMs = 60_000

/**
 * Reads the policy as it was for a decision: as of the offset that its record names, or without one as of its time.
 * Undefined where the history does not go back so far.
 */
export async function readPolicyAt(
  client: ClickHouseClient,
  topic: string,
  { offset, tsMs, subjects }: { readonly offset: number; readonly tsMs: number; readonly subjects: readonly string[] },
): Promise<PolicyAt | undefined> {
  const isKnown = offset >= 0
  // By time within the life of the topic that the decision was made in: offsets begin again with each.
  const [change] = await readRows<{ topic_id: string; id: string; offset: number; last: number; at_ms: number }>(
    client,
    `SELECT toString(h.topic_id) AS topic_id, toInt64(max(h.offset)) AS last,
       toString(argMaxIf(h.change, h.offset, h.kind = 'change')) AS id, toInt64(maxIf(h.offset, h.kind = 'change')) AS offset,
       toInt64(toUnixTimestamp64Milli(maxIf(h.at, h.kind = 'change'))) AS at_ms
     FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.kind IN ${changeKinds} AND h.at <= fromUnixTimestamp64Milli({until:Int64})
       AND h.offset <= {offset:UInt64}
     GROUP BY h.topic_id HAVING countIf(h.kind = 'change') > 0 ORDER BY max(h.at) DESC LIMIT 1`,
    { topic, until: tsMs + (isKnown ? clockSkewMs : 0), offset: isKnown ? offset : Number.MAX_SAFE_INTEGER },
    { clickhouse_settings: countsAsNumbers },
  )
  if (change === undefined) return undefined
  const entities = await readRows<HistoryEntity>(
    client,
    `SELECT kind, name, argMax(h.body, h.offset) AS body FROM policy_history AS h
     WHERE ${ofTopic} AND h.offset <= {offset:UInt64}
       AND (h.kind IN ('limit', 'plan', 'route', 'price', 'rateCard') OR (h.kind = 'subject' AND h.name IN {subjects:Array(String)}))
     GROUP BY kind, name HAVING body != ''`,
    { topic, topicId: change.topic_id, offset: change.offset, subjects },
  )
  const isNamed = isKnown && change.last === offset
  return { change: { id: change.id, offset: change.offset, atMs: change.at_ms }, isNamed, entities }
}

/**
 * Reads the policies that subjects had just before they were deleted, of those among `subjects` that were. Rejects with
 * ClickHouse's error.
 */
export async function readFormerPolicies(
  client: ClickHouseClient,
  topic: string,
  subjects: readonly string[],
): Promise<ReadonlyMap<string, PolicyAt>> {
  const deleted = await readRows<{ name: string; offset: number; at_ms: number }>(
    client,
    `SELECT h.name AS name, toInt64(argMax(h.offset, (h.at, h.offset))) AS offset,
       toInt64(toUnixTimestamp64Milli(max(h.at))) AS at_ms
     FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.kind = 'subject' AND h.name IN {subjects:Array(String)}
     GROUP BY h.name HAVING argMax(h.body, (h.at, h.offset)) = '' AND offset > 0`,
    { topic, subjects },
    { clickhouse_settings: countsAsNumbers },
  )
  const policies = new Map<string, PolicyAt>()
  for (const { name, offset, at_ms: tsMs } of deleted) {
    const before = await readPolicyAt(client, topic, { offset: offset - 1, tsMs, subjects: [name] })
    if (before !== undefined) policies.set(name, before)
  }
  return policies
}
