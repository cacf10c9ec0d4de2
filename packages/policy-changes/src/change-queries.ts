import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'

/** One entity that a change has put or deleted. Bodies are JSON; empty: it was not there, or is not there any more. */
export type ChangedBody = Readonly<Record<'kind' | 'name' | 'before' | 'after', string>>

/** A change as the policy's history has it. */
export interface ChangeFound {
  readonly at_ms: number
  /** Who made it, and the first lines of its summary: JSON. */
  readonly body: string
  readonly entities: readonly ChangedBody[]
}

/**
 * Reads a change that processes have taken over, with up to `entitiesMax` of its entities, in its order; those that it
 * wrote again as they were are left out. Undefined where the history has no such change.
 */
export async function findChange(
  client: ClickHouseClient,
  topic: string,
  { id, entitiesMax }: { readonly id: string; readonly entitiesMax: number },
): Promise<ChangeFound | undefined> {
  const numbers = { clickhouse_settings: countsAsNumbers }
  const [change] = await readRows<{ topic_id: string; at_ms: number; body: string }>(
    client,
    `SELECT toString(h.topic_id) AS topic_id, toInt64(toUnixTimestamp64Milli(h.at)) AS at_ms, h.body AS body
     FROM policy_history AS h WHERE h.topic = {topic:String} AND h.kind = 'change' AND h.name = {id:String} LIMIT 1`,
    { topic, id },
    numbers,
  )
  if (change === undefined) return undefined
  const ofTopic = 'h.topic = {topic:String} AND h.topic_id = {topicId:UUID}'
  const own = `${ofTopic} AND h.change = {id:UUID} AND h.kind NOT IN ('change', 'overtaken')`
  const entities = await readRows<ChangedBody>(
    client,
    `SELECT kind, name, argMaxIf(body, offset, NOT is_own) AS before, argMaxIf(body, offset, is_own) AS after
     FROM (
       SELECT h.kind AS kind, h.name AS name, h.body AS body, h.offset AS offset, h.change = {id:UUID} AS is_own
       FROM policy_history AS h
       WHERE ${ofTopic} AND (h.kind, h.name) IN (SELECT h.kind, h.name FROM policy_history AS h WHERE ${own})
         AND h.offset <= (SELECT max(h.offset) FROM policy_history AS h WHERE ${own})
     )
     GROUP BY kind, name HAVING before != after ORDER BY minIf(offset, is_own) LIMIT ${entitiesMax}`,
    { topic, topicId: change.topic_id, id },
    numbers,
  )
  return { at_ms: change.at_ms, body: change.body, entities }
}
