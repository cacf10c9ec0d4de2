import type { ClickHouseClient } from './connect.ts'

/**
 * What lists the statements that run, on all replicas of all shards: as `FROM` has it. A replica that does not answer
 * is an error, unless `skip_unavailable_shards` is set.
 */
export const processesOf = ({ cluster }: ClickHouseClient): string =>
  cluster === undefined
    ? 'system.processes'
    : `clusterAllReplicas('${cluster.cluster}', view(SELECT query_id, query_kind FROM system.processes))`
