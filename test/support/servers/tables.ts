import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { type ClickHouseClient, connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { clusterServer, isOnCluster } from './cluster-server.ts'
import { prepareCluster } from './cluster-tables.ts'
import { startOwnClickhouse } from './own-clickhouse.ts'
import { startServer } from './start-server.ts'

export type Tables = Awaited<ReturnType<typeof startTables>>

/** What people and the console ask of a cluster, over tables that are not replicated. */
async function openOnCluster(address: string): Promise<ClickHouseClient> {
  const { local, all } = await prepareCluster(address)
  await local.close()
  return all
}

/** A ClickHouse with all tables. The database's name is fixed, so a test that needs it empty starts one. */
export async function startTables(keptDir?: string) {
  const start = () => (keptDir === undefined ? startOwnClickhouse() : startServer(clickhouseServer, keptDir))
  const server = await (isOnCluster ? startServer(clusterServer(), keptDir) : start())
  const client = isOnCluster ? await openOnCluster(server.address) : connectClickhouse(server.address, 'test')
  if (!isOnCluster) await migrate(client, await readMigrations(join(projectRoot, 'infra/clickhouse/migrations')))
  return {
    url: server.address,
    client,
    pid: () => server.pid(),
    /** Kills ClickHouse; `restart` starts it again on the same port and data. */
    kill: () => server.kill('SIGKILL'),
    restart: () => server.restart(),
    rows: <Row>(query: string) => readRows<Row>(client, query),
    async close() {
      await client.close()
      await server.close()
    },
  }
}
