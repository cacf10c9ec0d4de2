import { clickhouseMissing, connectClickhouse, throwRefusal } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import { WeirError } from '@weir/core/errors.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { inProject } from '../project.ts'
import { noProgress } from '../terminal/progress.ts'

/** A server that has just started answers its first request late; for a wrong address a person waits as long. */
const answersWithinMs = 10_000

/** A statement that all servers of a cluster run waits for each of them, by default for 180 s. */
const clusterRequestMs = 200_000

/** Brings ClickHouse's tables to this version, and reports the migrations that it applied. */
export async function applyMigrations(
  server: ClickhouseServer,
  report: (line: string) => void,
  { tell } = noProgress,
): Promise<void> {
  const isCluster = server.clickhouseCluster !== ''
  const client = connectClickhouse(server, 'weir-migrate', isCluster ? clusterRequestMs : undefined, 'local')
  try {
    const answers = async () => (await client.ping({ select: false })).success
    await waitUntil(answers, { deadlineMs: answersWithinMs, everyMs: 500 })
    const missing = await clickhouseMissing(client)
    if (missing !== undefined) throw new WeirError('CLICKHOUSE_UNAVAILABLE', `Migrating: ${missing}`)
    const migrations = await readMigrations(inProject('infra/clickhouse/migrations'))
    const applied = await migrate(client, migrations, (name, done, all) => tell(name, done / all)).catch(
      throwRefusal(client),
    )
    report(applied.length === 0 ? 'tables are up to date' : `tables: applied ${applied.join(', ')}`)
  } finally {
    await client.close()
  }
}
