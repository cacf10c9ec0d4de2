import { randomUUID } from 'node:crypto'
import type { Period } from '@weir/core/prices/forecast.ts'
import { type ClickHouseClient, countsAsNumbers, readRows } from './connect.ts'
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

/** What the history has of the policy at one time. */
export interface PolicyAt {
  /** The last change that processes had taken over. */
  readonly change: { readonly id: string; readonly offset: number; readonly atMs: number }
  /** Whether it is the change that the decision's record names. */
  readonly isNamed: boolean
  /** Limits, plans, routes and price lists, and the subject, as they were then. */
  readonly entities: readonly { readonly kind: string; readonly name: string; readonly body: string }[]
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
  { offset, tsMs, subject }: { readonly offset: number; readonly tsMs: number; readonly subject: string },
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
  const entities = await readRows<PolicyAt['entities'][number]>(
    client,
    `SELECT kind, name, argMax(h.body, h.offset) AS body FROM policy_history AS h
     WHERE ${ofTopic} AND h.offset <= {offset:UInt64}
       AND (h.kind IN ('limit', 'plan', 'route', 'price') OR (h.kind = 'subject' AND h.name = {subject:String}))
     GROUP BY kind, name HAVING body != ''`,
    { topic, topicId: change.topic_id, offset: change.offset, subject },
  )
  const isNamed = isKnown && change.last === offset
  return { change: { id: change.id, offset: change.offset, atMs: change.at_ms }, isNamed, entities }
}

/** Whether the history has this change already, and so all before it. */
export async function hasChange(client: ClickHouseClient, topic: string, id: string): Promise<boolean> {
  const [found] = await readRows<{ rows: string }>(
    client,
    `SELECT toString(count()) AS rows FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.kind IN ${changeKinds} AND h.change = {id:UUID}`,
    { topic, id },
  )
  return found !== undefined && found.rows !== '0'
}

/** Changes of one subject and its plans in one month that are gone back over, each some milliseconds. */
const changesMax = 100

/**
 * Reads the policies that a subject had in a period, the newest first: the one at its end, and those before each change
 * of the subject or of a plan that it ever had. None where the history does not go back to the end of the period.
 */
export async function* readPoliciesIn(
  client: ClickHouseClient,
  topic: string,
  subject: string,
  { fromMs, toMs }: Period,
): AsyncGenerator<PolicyAt> {
  const last = await readPolicyAt(client, topic, { offset: -1, tsMs: toMs - 1, subject })
  if (last === undefined) return
  yield last
  const changes = await readRows<{ offset: number; at_ms: number }>(
    client,
    `SELECT toInt64(min(h.offset)) AS offset, toInt64(toUnixTimestamp64Milli(max(h.at))) AS at_ms
     FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.at >= fromUnixTimestamp64Milli({from:Int64})
       AND h.at < fromUnixTimestamp64Milli({to:Int64}) AND h.offset > 0
       AND (h.kind = 'subject' AND h.name = {subject:String} OR h.kind = 'plan' AND h.name IN (
         SELECT JSONExtractString(s.body, 'plan') FROM policy_history AS s
         WHERE s.topic = {topic:String} AND s.kind = 'subject' AND s.name = {subject:String}))
     GROUP BY h.change ORDER BY at_ms DESC, offset DESC LIMIT ${changesMax}`,
    { topic, subject, from: fromMs, to: toMs },
    { clickhouse_settings: countsAsNumbers },
  )
  for (const { offset, at_ms: tsMs } of changes) {
    const before = await readPolicyAt(client, topic, { offset: offset - 1, tsMs, subject })
    if (before !== undefined) yield before
  }
}

/**
 * Reads the policy as it was just before a subject was deleted from it, and when that was. Undefined where the last
 * that the history has of the subject is no deletion.
 */
export async function readFormerPolicy(
  client: ClickHouseClient,
  topic: string,
  subject: string,
): Promise<{ readonly deletedAtMs: number; readonly entities: PolicyAt['entities'] } | undefined> {
  const [last] = await readRows<{ offset: number; at_ms: number; body: string }>(
    client,
    `SELECT toInt64(h.offset) AS offset, toInt64(toUnixTimestamp64Milli(h.at)) AS at_ms, h.body AS body
     FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.kind = 'subject' AND h.name = {subject:String}
     ORDER BY h.at DESC, h.offset DESC LIMIT 1`,
    { topic, subject },
    { clickhouse_settings: countsAsNumbers },
  )
  if (last === undefined || last.body !== '' || last.offset === 0) return undefined
  const before = await readPolicyAt(client, topic, { offset: last.offset - 1, tsMs: last.at_ms, subject })
  return before === undefined ? undefined : { deletedAtMs: last.at_ms, entities: before.entities }
}

const pricedSql = "JSONExtractString(h.body, 'prices') != ''"

/**
 * Names the subjects that had a price list at some time, their own or their plan's, and were changed since then, or a
 * plan of theirs was; deleted ones are among them. In the order of their names, after one of them.
 */
export async function readPricedSubjects(
  client: ClickHouseClient,
  topic: string,
  { sinceMs, after, rowsMax }: { readonly sinceMs: number; readonly after: string; readonly rowsMax: number },
): Promise<readonly string[]> {
  const since = 'max(h.at) >= fromUnixTimestamp64Milli({since:Int64})'
  const plansSql = (having: string) =>
    `SELECT h.name FROM policy_history AS h WHERE h.topic = {topic:String} AND h.kind = 'plan' GROUP BY h.name HAVING ${having}`
  const rows = await readRows<{ name: string }>(
    client,
    `WITH JSONExtractString(h.body, 'plan') AS plan
     SELECT h.name AS name FROM policy_history AS h
     WHERE h.topic = {topic:String} AND h.kind = 'subject' AND h.name > {after:String}
     GROUP BY h.name
     HAVING countIf(${pricedSql} OR plan IN (${plansSql(`countIf(${pricedSql}) > 0`)})) > 0
       AND (${since} OR countIf(plan IN (${plansSql(since)})) > 0)
     ORDER BY h.name LIMIT {rowsMax:UInt32}`,
    { topic, since: sinceMs, after, rowsMax },
  )
  return rows.map(({ name }) => name)
}
