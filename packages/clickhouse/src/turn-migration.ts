/** Where the tables of a cluster are. */
export interface ClusterTarget {
  /** Its name in `remote_servers` of the servers. */
  readonly cluster: string
  /** The database with a `Distributed` table over each table: what is asked here is asked of all shards. */
  readonly database: string
}

/** The database in which each server has its own rows, and the views over them. */
export const localDatabase = (database: string): string => `${database}_local`

/** Both databases, as statements that create them name them: the one with the rows last. */
export const databasesOf = ({ cluster, database }: ClusterTarget): string[] =>
  [database, localDatabase(database)].map((name) => `${name} ON CLUSTER '${cluster}'`)

/** A migration's text says `weir.`, and never changes: outside of quotes that is replaced by the database's name. */
export const inDatabase = (statement: string, database: string): string =>
  statement.replaceAll(/'(?:[^'\\]|\\.)*'|\bweir\.(?=\w)/g, (found) => (found === 'weir.' ? `${database}.` : found))

/** Where Keeper has a table's parts: of one shard, or (for what all servers share) of none. */
export const keeperPath = ({ database }: ClusterTarget, table: string, shard = '{shard}'): string =>
  `/clickhouse/tables/${shard}/${database}/${table}`

/**
 * Tables that alerting and the console insert into through the `Distributed` one, and what tells the shard of a row:
 * rows that replace each other, and an alert's deliveries, are on one shard. Metering inserts on shards of its own
 * choice.
 */
const shardingKeys: Readonly<Record<string, string>> = {
  alerts: 'cityHash64(id)',
  deliveries: 'cityHash64(alert_id)',
  invoices: 'cityHash64(id)',
  policy_history: 'cityHash64(topic, kind, name)',
}

/** More than an outage lasts that Kafka bridges: by default ClickHouse forgets tokens after an hour. */
const windows = 'replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 604800'

const engine = /^ENGINE = (\w*MergeTree)(?:\((.*)\))?$/m
const begins = /^(?:CREATE (?:TABLE|VIEW|MATERIALIZED VIEW) IF NOT EXISTS|ALTER TABLE) (\w+)\.(\w+)/

function turnStatement(statement: string, target: ClusterTarget): string {
  const local = inDatabase(statement, localDatabase(target.database))
  // Rows are replicated by the table itself. It runs on the shard of the server that migrates.
  if (local.startsWith('INSERT ')) return local
  const [head, , table = ''] = begins.exec(local) ?? []
  if (head === undefined) throw new Error(`no cluster form of this statement: ${statement.slice(0, 100)}`)
  return `${head} ON CLUSTER '${target.cluster}'${local.slice(head.length)}`
    .replace(engine, (_, kind: string, parameters?: string) => {
      const replica = `'${keeperPath(target, table)}', '{replica}'`
      return `ENGINE = Replicated${kind}(${replica}${parameters === undefined ? '' : `, ${parameters}`})`
    })
    .replace(/\bnon_replicated_deduplication_window = \d+/, windows)
}

/** The table whose columns a statement decides, if it is one that is asked. */
function askedTable(statement: string): string | undefined {
  const [head, , table = ''] = begins.exec(statement) ?? []
  if (head === undefined || table.endsWith('_mv')) return undefined
  return head.startsWith('CREATE') || /\b(?:ADD|MODIFY|DROP) COLUMN\b/.test(statement) ? table : undefined
}

/** A `Distributed` table has no rows: it is replaced whole where the columns below it have changed. */
function distributedOver(table: string, { cluster, database }: ClusterTarget): string {
  const local = localDatabase(database)
  const key = shardingKeys[table]
  const parameters = `'${cluster}', '${local}', '${table}'${key === undefined ? '' : `, ${key}`}`
  return `CREATE OR REPLACE TABLE ${database}.${table} ON CLUSTER '${cluster}' AS ${local}.${table} ENGINE = Distributed(${parameters})`
}

/**
 * Returns a migration's statements as a cluster takes them, each safe to repeat: tables replicated and views beside
 * them in the local database of every server, then a `Distributed` table over each table or view whose columns are
 * new. Throws for a statement whose form is not known here.
 */
export function turnMigration(statements: readonly string[], target: ClusterTarget): string[] {
  const asked = new Set(statements.map(askedTable).filter((table) => table !== undefined))
  return [
    ...statements.map((statement) => turnStatement(statement, target)),
    ...[...asked].map((table) => distributedOver(table, target)),
  ]
}
