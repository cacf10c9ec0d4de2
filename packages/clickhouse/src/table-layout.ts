import { type ClusterTarget, inDatabase, keeperPath, localDatabase, turnMigration } from './turn-migration.ts'

/** The statements by which one server, or a cluster, gets its tables. */
export interface TableLayout {
  /** Creates the list of applied migrations, unless it is there. */
  readonly createHistory: string
  /** Brings the list up to date where other servers write it too. */
  readonly syncHistory: string | undefined
  /** Takes the lock: of several contenders exactly one completes it. */
  readonly takeLock: (comment: string) => string
  /** The codes by which it refuses the others. */
  readonly lockedCodes: readonly string[]
  /** Returns a row if the lock was taken more than `{seconds:UInt32}` ago. */
  readonly findStaleLock: string
  readonly dropLock: string
  /** A migrator that holds the lock longer than this is considered dead. */
  readonly lockStaleSeconds: number
  /** A migration's statements, as they are applied. */
  readonly turned: (statements: readonly string[]) => readonly string[]
}

const historyColumns = "(number UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3))"
const tableExists = '57'
const replicaExists = '253'
const isStale = "name = 'schema_lock' AND metadata_modification_time < now() - {seconds:UInt32}"

/** Tables in one database of one server. CREATE TABLE is the step that only one of several contenders completes. */
export const serverLayout = (database: string): TableLayout => ({
  createHistory: `CREATE TABLE IF NOT EXISTS schema_migrations
    ${historyColumns}
    ENGINE = MergeTree ORDER BY number`,
  syncHistory: undefined,
  takeLock: (comment) => `CREATE TABLE schema_lock (holder UUID) ENGINE = Memory COMMENT '${comment}'`,
  lockedCodes: [tableExists],
  findStaleLock: `SELECT comment FROM system.tables WHERE database = currentDatabase() AND ${isStale}`,
  dropLock: 'DROP TABLE IF EXISTS schema_lock SYNC',
  // Every statement takes seconds.
  lockStaleSeconds: 60,
  turned: (statements) => statements.map((statement) => inDatabase(statement, database)),
})

/**
 * Tables in two databases of every server of a cluster. The list of migrations is one for all shards. The lock is a
 * table whose one replica has a fixed name, which Keeper lets only one server create.
 */
export function clusterLayout(target: ClusterTarget): TableLayout {
  const local = localDatabase(target.database)
  const on = `ON CLUSTER '${target.cluster}'`
  const shared = (table: string, replica: string) =>
    `ENGINE = ReplicatedMergeTree('${keeperPath(target, table, 'all')}', '${replica}')`
  return {
    createHistory: `CREATE TABLE IF NOT EXISTS ${local}.schema_migrations ${on}
      ${historyColumns}
      ${shared('schema_migrations', '{shard}-{replica}')} ORDER BY number`,
    syncHistory: `SYSTEM SYNC REPLICA ${local}.schema_migrations`,
    takeLock: (comment) => `CREATE TABLE ${local}.schema_lock (holder UUID)
      ${shared('schema_lock', 'migrator')} ORDER BY holder COMMENT '${comment}'`,
    lockedCodes: [tableExists, replicaExists],
    findStaleLock: `SELECT comment FROM clusterAllReplicas('${target.cluster}', system.tables)
      WHERE database = '${local}' AND ${isStale}`,
    dropLock: `DROP TABLE IF EXISTS ${local}.schema_lock ${on} SYNC`,
    // Each of some hundred statements waits for all servers.
    lockStaleSeconds: 600,
    turned: (statements) => turnMigration(statements, target),
  }
}
