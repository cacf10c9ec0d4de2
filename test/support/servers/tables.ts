import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { startOwnClickhouse } from './own-clickhouse.ts'
import { startServer } from './start-server.ts'

export interface Tables {
  readonly url: string
  readonly client: ClickHouseClient
  pid(): number
  /** Kills ClickHouse; `restart` starts it again on the same port and data. */
  kill(): Promise<void>
  restart(): Promise<void>
  rows<Row>(query: string): Promise<Row[]>
  close(): Promise<void>
}

/** A ClickHouse with all tables. The database's name is fixed, so a test that needs it empty starts one. */
export async function startTables(keptDir?: string): Promise<Tables> {
  const server = await (keptDir === undefined ? startOwnClickhouse() : startServer(clickhouseServer, keptDir))
  const client = connectClickhouse(server.address, 'test')
  await migrate(client, await readMigrations(join(projectRoot, 'infra/clickhouse/migrations')))
  return {
    url: server.address,
    client,
    pid: () => server.pid(),
    kill: () => server.kill('SIGKILL'),
    restart: () => server.restart(),
    async rows<Row>(query: string) {
      const answer = await client.query({ query, format: 'JSONEachRow' })
      return answer.json<Row>()
    },
    async close() {
      await client.close()
      await server.close()
    },
  }
}
