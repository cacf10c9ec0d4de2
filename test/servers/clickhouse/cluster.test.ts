import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parseUsageQuery } from '@weir/api/query/usage-query.ts'
import { projectRoot } from '@weir/cli/project.ts'
import { catchUp } from '@weir/clickhouse/catch-up.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { clusterLayout } from '@weir/clickhouse/table-layout.ts'
import { turnMigration } from '@weir/clickhouse/turn-migration.ts'
import { clickhouseAt } from '@weir/clickhouse/variables.ts'
import { readCountedOffsets } from '@weir/console/money/billing-queries.ts'
import { askUsage } from '@weir/console/usage/usage-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { afterAll, expect, test } from 'vitest'
import { forFile, forTest } from '../../support/opened.ts'
import { clusterServer, doubleClusterName } from '../../support/servers/cluster-server.ts'
import { forOneServer, prepareCluster } from '../../support/servers/cluster-tables.ts'
import { startServer } from '../../support/servers/start-server.ts'

const layout = clusterLayout({ cluster: 'main', database: 'weir' })
const migrations = await readMigrations(join(projectRoot, 'infra/clickhouse/migrations'))

const server = await forFile(startServer(clusterServer()))
/** Of the only server of a cluster, its own tables, and those over all shards. */
const { local, all } = await prepareCluster(server.address)
afterAll(() => Promise.all([local.close(), all.close()]))

test('ClickHouse reads every statement that makes the tables of a cluster', async () => {
  const formatted = async (statement: string) => {
    const [row] = await readRows<{ text: string }>(local, 'SELECT formatQuery({statement:String}) AS text', {
      statement,
    })
    return row?.text ?? ''
  }
  const { createHistory, syncHistory = '', findStaleLock, dropLock } = layout
  const own = [createHistory, syncHistory, layout.takeLock(randomUUID()), dropLock]
  const turned = migrations.flatMap(({ statements }) => layout.turned(statements))
  for (const statement of [...own, findStaleLock.replace('{seconds:UInt32}', '1'), ...turned]) {
    const text = await formatted(statement)
    expect(text.includes('ON CLUSTER main')).toBe(statement.includes(" ON CLUSTER 'main'"))
  }
  await expect(formatted('CREATE TABLE weir_local.t (n UInt8 ON CLUSTER main')).rejects.toThrow('Syntax error')
}, 60_000)

test('ClickHouse creates every replicated table, under a path of its shard, and keeps tokens for a week', async () => {
  const target = { cluster: 'main', database: 'other' }
  const created = migrations
    .flatMap(({ statements }) => turnMigration(statements, target))
    .filter((statement) => statement.startsWith('CREATE TABLE IF NOT EXISTS'))
  for (const query of ['CREATE DATABASE other_local', ...created]) await all.command({ query: forOneServer(query) })
  const tables = await readRows<{ name: string; engine_full: string }>(
    local,
    "SELECT name, engine_full FROM system.tables WHERE database = 'other_local' AND engine LIKE 'Replicated%' ORDER BY name",
  )
  expect(tables.length).toBe(created.length)
  for (const { name, engine_full: full } of tables) {
    expect(full).toContain(`'/clickhouse/tables/{shard}/other/${name}', '{replica}'`)
    expect(full).toContain('replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 604800')
  }
})

test('What is asked has the columns of what is below it', async () => {
  const differ = await readRows(
    all,
    `SELECT table, groupArray((database, name, type)) FROM
      (SELECT database, table, name, type, count() OVER (PARTITION BY table, name, type) AS places FROM system.columns
        WHERE database IN ('weir', 'weir_local') AND NOT endsWith(table, '_mv') AND table != 'schema_migrations')
      WHERE places != 2 GROUP BY table`,
  )
  expect(differ).toEqual([])
})

test('Migrations that were applied are not applied again, and a second migrator waits for the lock', async () => {
  expect(await migrate(local, migrations)).toEqual([])
  await local.command({ query: layout.takeLock(randomUUID()) })
  await expect(local.command({ query: layout.takeLock(randomUUID()) })).rejects.toMatchObject({ code: '57' })
  // Another server has no such table: Keeper refuses it.
  const elsewhere = layout.takeLock(randomUUID()).replace('weir_local.schema_lock', 'default.schema_lock')
  await expect(local.command({ query: elsewhere })).rejects.toMatchObject({ code: '253' })
  await local.command({ query: layout.dropLock.replace(" ON CLUSTER 'main'", '') })
})

const decision = (seq: number) => ({
  v: 1,
  id: randomUUID(),
  ts: '2026-11-20 10:00:00.000',
  subject: 'acme',
  outcome: 'allow',
  count: 1,
  cost: 2,
  journal: '00000000-0000-4000-8000-000000000001',
  seq,
  partition: 0,
  offset: seq,
  limits: [{ name: 'minute', size: 100, used: seq, remaining: 0, reset_ms: 1 }],
  dims: { model: 'small' },
  units: { tokens: 3 },
})

test('A block that is inserted twice is in the raw rows, in every rollup and in what is asked once', async () => {
  const block = { table: 'decisions', dedupToken: randomUUID(), lines: linesOf([decision(1), decision(2)]) }
  await insertBlock(local, block)
  await insertBlock(local, block)
  await catchUp(local)
  const tables = ['decisions', 'usage_1m', 'usage_15m', 'usage_total_15m', 'limits_15m', 'units_15m']
  for (const client of [local, all]) {
    const counts = tables.map((table) => `(SELECT toUInt32(sum(count)) FROM ${table}) AS of_${table}`)
    const [row] = await readRows(client, `SELECT ${counts.join(', ')}`)
    expect(row).toEqual(Object.fromEntries(tables.map((table) => [`of_${table}`, 2])))
  }
})

test('The largest group and the sum of all others are answered over one shard, and over two', async () => {
  const ts = '2026-11-10 10:00:00.000'
  const rows = ['large', 'large', 'one', 'other'].map((subject, at) => ({ ...decision(10 + at), subject, ts }))
  await insertBlock(local, { table: 'decisions', dedupToken: randomUUID(), lines: linesOf(rows) })
  const double = { ...clickhouseAt(server.address), clickhouseDatabase: 'double', clickhouseCluster: doubleClusterName }
  const twice = await forTest(connectClickhouse(double, 'test'))
  await all.command({ query: 'CREATE DATABASE double' })
  for (const table of ['usage_15m', 'decisions']) {
    const engine = `Distributed('${doubleClusterName}', 'weir_local', '${table}')`
    await all.command({ query: `CREATE TABLE double.${table} AS weir_local.${table} ENGINE = ${engine}` })
  }
  for (const [step, by] of [
    ['hour', 'subject'],
    ['total', 'subject'],
    ['hour', 'subject,mode'],
    ['total', 'subject,mode'],
  ]) {
    const asked = { by, step, top: '1', order: '-count', from: '2026-11-10', to: '2026-11-11' }
    const parsed = parseUsageQuery(asked, { nowMs: Date.now(), isNarrow: true })
    if (parsed.kind === 'problems') throw new Error(parsed.problems.join())
    for (const [client, times] of [
      [all, 1],
      [twice, 2],
    ] as const) {
      const found = await askUsage(client, Reach.everybody, parsed.query)
      expect(found.map(({ subject, other, count, groups }) => ({ subject, other, count, groups }))).toEqual([
        { subject: 'large', other: false, count: String(2 * times), groups: '1' },
        { subject: '', other: true, count: String(2 * times), groups: '2' },
      ])
    }
  }
})

test('What alerting and the console insert through the tables over all shards is there at once, and once', async () => {
  const alert = {
    id: randomUUID(),
    subject: 'acme',
    period_start: '2026-11-20 00:00:00',
    period_end: '2026-11-21 00:00:00',
  }
  const block = { table: 'alerts', dedupToken: randomUUID(), lines: linesOf([alert]) }
  await insertBlock(all, block)
  await insertBlock(all, block)
  expect(await readRows(local, 'SELECT toUInt32(count()) AS n FROM alerts')).toEqual([{ n: 1 }])
})

test('Exports end before what was inserted within the last seconds, which a replica may lack', async () => {
  const places = async () => (await readCountedOffsets(all, 0)).map(([, , offset]) => offset)
  expect(await places()).toEqual([])
  await local.command({
    query: 'ALTER TABLE weir.numbers UPDATE received_at = received_at - 20 WHERE 1 SETTINGS mutations_sync = 2',
  })
  expect(await places()).toEqual([expect.any(String)])
})

test('A question within a question is answered over all shards: how far usage is complete', async () => {
  const mark = { topic: topics.decisions, journal: randomUUID(), partition: 0, mark: '2026-11-20 10:00:00.000', seq: 3 }
  await insertBlock(local, { table: 'marks', dedupToken: randomUUID(), lines: linesOf([{ ...mark, end: false }]) })
  expect(await readCompleteness(all, topics.decisions)).toEqual({
    completeThroughMs: Date.parse('2026-11-20T10:00:00Z'),
    silent: [],
  })
})

test('A decision and its outcome are joined on their shard', async () => {
  const one = decision(3)
  await insertBlock(local, { table: 'decisions', dedupToken: randomUUID(), lines: linesOf([one]) })
  const outcome = { v: 1, id: one.id, ts: one.ts, subject: one.subject, status: 204 }
  await insertBlock(local, { table: 'outcomes', dedupToken: randomUUID(), lines: linesOf([outcome]) })
  const query = 'SELECT status FROM decisions_with_outcomes WHERE id = {id:UUID}'
  expect(await readRows(all, query, { id: one.id })).toEqual([{ status: 204 }])
})
