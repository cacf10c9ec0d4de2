import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { clickhouseAt } from '@weir/clickhouse/variables.ts'
import { clusterName } from './cluster-server.ts'

const clusterAt = (address: string) => ({ ...clickhouseAt(address), clickhouseCluster: clusterName })

/** The engine has no queue of statements for all servers of a cluster: it takes them without ON CLUSTER. */
export const forOneServer = (query: string) => query.replace(` ON CLUSTER '${clusterName}'`, '')

/** Replicated tables would take no row here. That only one contender creates the lock is Keeper's doing. */
const withOwnTables = (query: string) => {
  if (query.includes('schema_lock')) return query
  if (query.startsWith('SYSTEM SYNC REPLICA')) return 'SELECT 1'
  return query
    .replace(/\bReplicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?/, '$1(')
    .replace(/\breplicated_deduplication_window = \d+, \w+ = \d+/, 'non_replicated_deduplication_window = 10000')
}

/** A client that changes each command before it sends it. */
const changing = (client: ClickHouseClient, change: (query: string) => string): ClickHouseClient =>
  new Proxy(client, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (name !== 'command') return member.bind(target)
      return (given: { readonly query: string }) => target.command({ ...given, query: change(given.query) })
    },
  })

/**
 * Makes both databases of a cluster on its only server, by the migrations as `weir migrate` turns them, but with tables
 * that are not replicated. Returns clients of both. A command of the local one may name tables as `weir.decisions`.
 */
export async function prepareCluster(address: string) {
  const outside = connectClickhouse({ ...clickhouseAt(address), clickhouseDatabase: 'default' }, 'test')
  for (const name of ['weir', 'weir_local']) await outside.command({ query: `CREATE DATABASE ${name}` })
  await outside.close()
  const local = connectClickhouse(clusterAt(address), 'test', undefined, 'local')
  const change = (query: string) => withOwnTables(forOneServer(query))
  await migrate(changing(local, change), await readMigrations(join(projectRoot, 'infra/clickhouse/migrations')))
  const all = connectClickhouse(clusterAt(address), 'test')
  const named = (query: string) => query.replaceAll(/\bweir\.(?=\w)/g, 'weir_local.')
  return { all, local: changing(local, (query) => change(named(query))) }
}
