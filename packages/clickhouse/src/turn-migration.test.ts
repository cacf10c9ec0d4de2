import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readMigrations } from './migrate.ts'
import { turnMigration } from './turn-migration.ts'

const target = { cluster: 'main', database: 'weir' }
const migrations = await readMigrations(join(import.meta.dirname, '../../../infra/clickhouse/migrations'))
const turned = migrations.flatMap(({ statements }) => turnMigration(statements, target))
const of = (number: number) => turnMigration(migrations[number - 1]?.statements ?? [], target)
const named = (pattern: RegExp) => turned.flatMap((one) => pattern.exec(one)?.[1] ?? []).toSorted()

test('A table and its view are replicated on every server, and asked through a table over all shards', () => {
  const replica = "'/clickhouse/tables/{shard}/weir/usage_1m', '{replica}'"
  const [table = '', view = '', asked, ...more] = of(2)
  const lines = table.split('\n')
  expect([lines[0], ...lines.slice(-4)]).toEqual([
    "CREATE TABLE IF NOT EXISTS weir_local.usage_1m ON CLUSTER 'main'",
    `ENGINE = ReplicatedSummingMergeTree(${replica}, (count, cost))`,
    'PARTITION BY toYYYYMM(ts)',
    'ORDER BY (subject, key_id, ts, plan, route, method, outcome, denied_by)',
    'SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 604800',
  ])
  expect(view.split('\n').at(0)).toBe(
    "CREATE MATERIALIZED VIEW IF NOT EXISTS weir_local.usage_1m_mv ON CLUSTER 'main' TO weir_local.usage_1m AS",
  )
  expect(view.split('\n').at(-2)).toBe('FROM weir_local.decisions AS d')
  expect([asked, ...more]).toEqual([
    "CREATE OR REPLACE TABLE weir.usage_1m ON CLUSTER 'main' AS weir_local.usage_1m ENGINE = Distributed('main', 'weir_local', 'usage_1m')",
  ])
})

test('Changes of columns are made on every server, and then in the table over all shards', () => {
  expect(of(21)).toEqual([
    expect.stringMatching(/^ALTER TABLE weir_local\.alerts ON CLUSTER 'main'\s+ADD COLUMN IF NOT EXISTS silence/),
    expect.stringMatching(
      /^CREATE OR REPLACE TABLE weir\.alerts .* Distributed\('main', 'weir_local', 'alerts', cityHash64\(id\)\)$/,
    ),
  ])
  // Neither an index nor what a table keeps is a column.
  expect([...of(20), ...of(11)].filter((one) => one.includes('Distributed'))).toEqual([])
  // A view into a table is not asked.
  const changed = of(5).filter((one) => one.includes('Distributed'))
  expect(changed.map((one) => one.split(' ')[4])).toEqual(
    ['decisions', 'usage_1m', 'usage_15m', 'usage_total_15m'].map((name) => `weir.${name}`),
  )
})

test('Texts keep the names of topics, and rows are inserted without ON CLUSTER', () => {
  expect(of(10).at(-2)).toBe(
    [
      'INSERT INTO weir_local.numbers (topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq)',
      "SELECT 'weir.decisions.v1', topic_id, partition, journal, min(d.offset), max(d.offset), min(d.seq), max(d.seq)",
      'FROM weir_local.decisions AS d',
      'GROUP BY topic_id, partition, journal',
    ].join('\n'),
  )
})

test('Every table of every migration is replicated under its own path, and remembers tokens for a week', () => {
  const created = named(/^CREATE TABLE IF NOT EXISTS weir_local\.(\w+) /)
  expect(created.length).toBeGreaterThan(12)
  expect(
    named(/ENGINE = Replicated\w*MergeTree\('\/clickhouse\/tables\/\{shard\}\/weir\/(\w+)', '\{replica\}'/),
  ).toEqual(created)
  expect(
    named(/^CREATE TABLE IF NOT EXISTS weir_local\.(\w+) [\s\S]*replicated_deduplication_window_seconds = 604800/),
  ).toEqual(created)
  expect(turned.filter((one) => one.includes('non_replicated'))).toEqual([])
  expect(turned.filter((one) => !one.startsWith('INSERT ') && !one.includes(" ON CLUSTER 'main'"))).toEqual([])
})

test('Every table and view that is no view into a table is asked over all shards', () => {
  const own = [...named(/^CREATE TABLE IF NOT EXISTS \w+\.(\w+)/), ...named(/^CREATE VIEW IF NOT EXISTS \w+\.(\w+)/)]
  expect([...new Set(named(/^CREATE OR REPLACE TABLE weir\.(\w+) /))]).toEqual(own.toSorted())
  // What is below it names no table that is asked.
  const below = turned.filter((one) => !one.startsWith('CREATE OR REPLACE'))
  expect(below.filter((one) => /\bweir\./.test(one.replaceAll(/'[^']*'/g, '')))).toEqual([])
})

test('Another database and another cluster are named throughout', () => {
  const other = migrations.flatMap(({ statements }) => turnMigration(statements, { cluster: 'c-2', database: 'usage' }))
  expect(other.join(';').replaceAll(/'(?:[^'\\]|\\.)*'/g, '')).not.toMatch(/\bweir(_local)?\./)
  expect(other.join(';')).not.toContain("'main'")
  expect(other.join(';')).toContain("'/clickhouse/tables/{shard}/usage/decisions'")
})

test.each([
  'DROP TABLE weir.decisions',
  'CREATE TABLE weir.other (n UInt8) ENGINE = Memory',
  'OPTIMIZE TABLE weir.marks',
])('A statement whose form is not known is refused: %s', (statement) =>
  expect(() => turnMigration([statement], target)).toThrow(statement),
)
