import type { ClickHouseClient } from './connect.ts'
import { localDatabase } from './turn-migration.ts'

/**
 * What lists the statements that run, on all replicas of all shards: as `FROM` has it. A replica that does not answer
 * is an error, unless `skip_unavailable_shards` is set.
 */
export const processesOf = ({ cluster }: ClickHouseClient): string =>
  cluster === undefined
    ? 'system.processes'
    : `clusterAllReplicas('${cluster.cluster}', view(SELECT query_id, query_kind FROM system.processes))`

/**
 * A table on every replica of every shard, as `FROM` has it: a row that was answered for is on most of them, and comes
 * once from each. A replica that does not answer is an error.
 */
export const everyReplicaOf = ({ cluster }: ClickHouseClient, table: string): string =>
  cluster === undefined
    ? table
    : `clusterAllReplicas('${cluster.cluster}', ${localDatabase(cluster.database)}.${table})`
