import { randomUUID } from 'node:crypto'
import { type ClickHouseClient, readRows } from './connect.ts'
import { insertBlock, linesOf } from './insert.ts'

const nothing = '00000000-0000-0000-0000-000000000000'

/** A row of `numbers` that is about no topic. After a week all of them are one row. */
const ownWrite = {
  topic: 'weir.sync',
  topic_id: nothing,
  partition: 0,
  journal: nothing,
  from_offset: 0,
  to_offset: 0,
  from_seq: 0,
  to_seq: 0,
}

/**
 * Resolves when a replica of a cluster has all rows of these tables, or of all, that any replica of its shard had when
 * it was called; immediately on a server by itself. First it writes a row of its own: what a session reads of Keeper
 * may be of before another session's write, but never of before its own.
 */
export async function catchUp(client: ClickHouseClient, tables?: readonly string[]): Promise<void> {
  if (client.cluster === undefined) return
  await insertBlock(client, { table: 'numbers', lines: linesOf([ownWrite]), dedupToken: `sync:${randomUUID()}` })
  const replicated = await readRows<{ name: string }>(
    client,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE 'Replicated%' AND NOT startsWith(name, 'schema_')",
  )
  for (const { name } of replicated) {
    if (tables?.includes(name) === false) continue
    await client.command({ query: `SYSTEM SYNC REPLICA ${client.database}.${name} LIGHTWEIGHT` })
  }
}
