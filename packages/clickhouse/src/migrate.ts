import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ClickHouseError } from '@clickhouse/client'
import { WeirError } from '@weir/core/errors.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { type ClickHouseClient, readRows } from './connect.ts'
import { databaseMissing } from './refusals.ts'
import { clusterLayout, serverLayout, type TableLayout } from './table-layout.ts'

/** One file of statements, applied once. */
export interface Migration {
  /** From 1, without a hole: the number that the file name begins with. */
  readonly number: number
  readonly name: string
  /** SHA-256 of the file: an applied migration never changes. */
  readonly checksum: string
  /** Each safe to run again. */
  readonly statements: readonly string[]
}

const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

/** Cuts at semicolons that end a line, and leaves comment lines out. */
function splitStatements(sql: string): string[] {
  const code = sql
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
  return code
    .split(/;[ \t]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

/** Reads all migrations of a folder in order. Throws if a file is stray, or a number missing or there twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const files = (await readdir(folder)).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const match = fileName.exec(file)
      const number = Number(match?.[1])
      if (match === null || number !== index + 1) {
        throw new Error(`${join(folder, file)}: name migrations 0001_what.sql and number them without gaps`)
      }
      const text = await readFile(join(folder, file), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { number, name: match[2] ?? '', checksum, statements: splitStatements(text) }
    }),
  )
}

/** How much longer a lock is waited for than that of a dead migrator lasts. */
const lockGraceMs = 30_000

const hasCode = (error: unknown, code: string) => error instanceof ClickHouseError && error.code === code

async function takeLock(client: ClickHouseClient, layout: TableLayout): Promise<boolean> {
  try {
    await client.command({ query: layout.takeLock(randomUUID()) })
    return true
  } catch (error) {
    if (!layout.lockedCodes.some((code) => hasCode(error, code))) throw error
    const stale = await readRows(client, layout.findStaleLock, { seconds: layout.lockStaleSeconds })
    if (stale.length > 0) await client.command({ query: layout.dropLock })
    return false
  }
}

async function appliedChecksums(client: ClickHouseClient): Promise<Map<number, string>> {
  const rows = await readRows<{ number: number; checksum: string }>(
    client,
    'SELECT number, any(checksum) AS checksum FROM schema_migrations GROUP BY number',
  )
  return new Map(rows.map((row) => [row.number, row.checksum]))
}

/** Needs the right to create a database only where it is missing. */
async function createHistory(client: ClickHouseClient, { createHistory: query }: TableLayout): Promise<void> {
  try {
    await client.command({ query })
  } catch (error) {
    if (!hasCode(error, databaseMissing)) throw error
    await client.createDatabase()
    await client.command({ query })
  }
}

async function apply(client: ClickHouseClient, layout: TableLayout, migration: Migration): Promise<void> {
  for (const query of layout.turned(migration.statements)) await client.command({ query })
  await client.insert({
    table: 'schema_migrations',
    values: [{ number: migration.number, name: migration.name, checksum: migration.checksum }],
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0 },
  })
}

/**
 * Brings the database, or both databases of a cluster, to the newest migration, under a lock, so that several may try
 * at once. `client` is one of where the rows are. Returns the names of what it applied. An applied file that was
 * changed since is an error: ClickHouse cannot roll back, so history is never edited. `onMigration` is called before
 * each, with how many are done and how many there are to do.
 */
export async function migrate(
  client: ClickHouseClient,
  migrations: readonly Migration[],
  onMigration: (name: string, done: number, all: number) => void = () => undefined,
): Promise<string[]> {
  const layout = client.cluster === undefined ? serverLayout(client.database) : clusterLayout(client.cluster)
  await createHistory(client, layout)
  const deadlineMs = layout.lockStaleSeconds * 1_000 + lockGraceMs
  const locked = await waitUntil(() => takeLock(client, layout), { deadlineMs, everyMs: 250 })
  if (locked !== true) {
    throw new WeirError('MIGRATION_LOCKED', 'Another migration holds schema_lock; wait for it or drop that table')
  }
  try {
    if (layout.syncHistory !== undefined) await client.command({ query: layout.syncHistory })
    const applied = await appliedChecksums(client)
    const changed = migrations.filter(({ number, checksum }) => (applied.get(number) ?? checksum) !== checksum)
    if (changed.length > 0) {
      const names = changed.map(({ number, name }) => `${number} ${name}`).join(', ')
      throw new WeirError(
        'MIGRATION_CHANGED',
        `Applied migrations were edited: ${names}. Restore them and add a new file`,
      )
    }
    const missing = migrations.filter(({ number }) => !applied.has(number))
    for (const [done, migration] of missing.entries()) {
      onMigration(migration.name, done, missing.length)
      await apply(client, layout, migration)
    }
    return missing.map(({ name }) => name)
  } finally {
    await client.command({ query: layout.dropLock })
  }
}
