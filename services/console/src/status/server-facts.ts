import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'
import { localDatabase } from '@weir/clickhouse/turn-migration.ts'

/** Numbers by their labels. */
type Labelled = Readonly<Record<string, number>>

/** What decides how long ClickHouse can go on as it is. */
export interface ServerFacts {
  /** The most active parts that a partition of each table has: ClickHouse slows inserts beyond some thousand. */
  readonly partsMax: Labelled
  readonly diskFreeRatio: Labelled
  /** Of each replicated table, how far this server is behind. */
  readonly replicaDelaySeconds: Labelled
}

const partsMax = (database: string) => `SELECT table AS label, max(parts) AS value FROM
  (SELECT table, partition_id, count() AS parts FROM system.parts
    WHERE active AND database = '${database}' GROUP BY table, partition_id)
  GROUP BY table ORDER BY value DESC LIMIT 20`

const diskFreeRatio = `SELECT name AS label, free_space / total_space AS value
  FROM system.disks WHERE total_space > 0 ORDER BY value LIMIT 8`

/** Only columns for which Keeper is not asked. */
const replicaDelay = (database: string) => `SELECT table AS label, max(absolute_delay) AS value
  FROM system.replicas WHERE database = '${database}' GROUP BY table ORDER BY value DESC LIMIT 20`

/**
 * Reads the worst of each kind, of a cluster on the server that answers. Rejects with ClickHouse's error, and after
 * `deadlineMs`.
 */
export async function readServerFacts(client: ClickHouseClient, deadlineMs: number): Promise<ServerFacts> {
  const more = { abort_signal: AbortSignal.timeout(deadlineMs), clickhouse_settings: countsAsNumbers }
  const ask = async (query: string): Promise<Labelled> => {
    const rows = await readRows<{ label: string; value: number }>(client, query, {}, more)
    return Object.fromEntries(rows.map(({ label, value }) => [label, value]))
  }
  const database = client.cluster === undefined ? client.database : localDatabase(client.cluster.database)
  const [parts, disks, delays] = await Promise.all([partsMax(database), diskFreeRatio, replicaDelay(database)].map(ask))
  return { partsMax: parts ?? {}, diskFreeRatio: disks ?? {}, replicaDelaySeconds: delays ?? {} }
}
