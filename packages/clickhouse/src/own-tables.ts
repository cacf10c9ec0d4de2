import { WeirError } from '@weir/core/errors.ts'
import { type ClickHouseClient, readRows } from './connect.ts'

/**
 * Rejects if the database has the tables over all shards of a cluster. What is inserted there as into one server could
 * be lost, or counted twice.
 */
export async function refuseDistributed(client: ClickHouseClient): Promise<void> {
  const tables = await readRows(
    client,
    "SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = 'decisions' AND engine = 'Distributed'",
  )
  if (tables.length === 0) return
  const what = `database ${client.database} has the tables over a cluster: set WEIR_CLICKHOUSE_CLUSTER`
  throw new WeirError('CLICKHOUSE_UNAVAILABLE', what)
}
