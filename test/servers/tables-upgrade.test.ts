import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { describe, expect, it } from 'vitest'
import { forFile } from '../support/opened.ts'
import { startOwnClickhouse } from '../support/servers/own-clickhouse.ts'

const server = await forFile(startOwnClickhouse())
const client = await forFile(connectClickhouse(server.address, 'test'))

const rows = <T>(query: string) => readRows<T>(client, query)
const journal = randomUUID()

/** A record as the first version of the tables took it. */
const line = (seq: number, more: Readonly<Record<string, unknown>> = {}) =>
  `${JSON.stringify({
    v: 1,
    id: randomUUID(),
    ts: '2026-11-20 10:00:01.000',
    subject: 'acme',
    key_id: 'k1',
    plan: 'free',
    route: '/r',
    method: 'GET',
    cost: 5,
    count: 2,
    outcome: 'allow',
    reason: 'ok',
    mode: 'enforce',
    charged: 'yes',
    denied_by: '',
    limits: [],
    journal,
    seq,
    partition: 1,
    offset: seq + 100,
    ...more,
  })}\n`

const insert = (lines: readonly string[], token: string) =>
  insertBlock(client, { table: 'weir.decisions', dedupToken: token, lines: Buffer.from(lines.join('')) })

const sums = () =>
  Promise.all(
    ['usage_1m', 'usage_15m', 'usage_total_15m'].map(async (table) => {
      const [row] = await rows(`SELECT toInt32(sum(count)) AS n, toInt32(sum(cost)) AS units FROM weir.${table} FINAL`)
      return row
    }),
  )

describe('tables of the first version that hold rows', () => {
  it('keep them, and their sums go on from there, when they are brought to the newest', async () => {
    const migrations = await readMigrations(join(projectRoot, 'infra/clickhouse/migrations'))
    await migrate(client, migrations.slice(0, 4))
    await insert([line(0), line(1)], 'first')
    const shadowed = { mode: 'shadow', reason: 'limit', denied_by: 'trial' }
    await insert([line(2, shadowed)], 'second')
    const otp = { name: 'otp', size: 5, used: 5, remaining: 0, reset_ms: 60_000 }
    const by = { ip: '192.0.2.1' }
    const counted = { policy: 412, retry_ms: 60_000, ip: '192.0.2.1', limits: [{ ...otp, by }] }
    // Metering of this version may meet tables that are not migrated yet.
    await insert([line(5, { subject: 'old', limits: [otp] }), line(8, { subject: 'early', ...counted })], 'limits')

    await migrate(client, migrations)
    expect(await sums()).toEqual(Array(3).fill({ n: 10, units: 50 }))
    const correction = line(4, { corrects: randomUUID(), adjustment: -45, cost: 0, count: 0 })
    const both = [line(3, { reason: 'limit', denied_by: 'soft', shadowed_by: 'trial' }), correction]
    await insert(both, 'third')
    await insert(both, 'third')
    expect(await sums()).toEqual(Array(3).fill({ n: 12, units: 15 }))
    expect(await rows('SELECT denied_by, shadowed_by FROM weir.decisions ORDER BY seq')).toEqual([
      ...['', ''].map((none) => ({ denied_by: none, shadowed_by: none })),
      ...['trial', 'soft'].map((name) => ({ denied_by: name, shadowed_by: 'trial' })),
      ...['', '', ''].map((none) => ({ denied_by: none, shadowed_by: none })),
    ])
    await insert([line(6, { subject: 'new', ...counted }), line(7, { subject: 'older', limits: [otp] })], 'fourth')
    expect(
      await rows(`SELECT subject, limits[1].by AS by, toInt32(policy) AS policy, toInt32(retry_ms) AS retry_ms, ip
        FROM weir.decisions WHERE notEmpty(limits) ORDER BY seq`),
    ).toEqual([
      { subject: 'old', by: {}, policy: -1, retry_ms: 0, ip: '' },
      { subject: 'new', by, policy: 412, retry_ms: 60_000, ip: '192.0.2.1' },
      ...['older', 'early'].map((subject) => ({ subject, by: {}, policy: -1, retry_ms: 0, ip: '' })),
    ])
    const numbers = await rows(
      `SELECT topic, partition, toInt32(min(from_offset)) AS first, toInt32(max(to_offset)) AS last, toInt32(max(to_seq)) AS seq
       FROM weir.numbers WHERE journal = '${journal}' GROUP BY topic, partition`,
    )
    expect(numbers).toEqual([{ topic: 'weir.decisions.v1', partition: 1, first: 100, last: 108, seq: 8 }])
  })

  it('are the same when a step that was broken off is taken again', async () => {
    const migrations = await readMigrations(join(projectRoot, 'infra/clickhouse/migrations'))
    for (const { number, statements } of migrations) {
      for (const query of number > 4 ? statements : []) await client.command({ query })
    }
    expect(await sums()).toEqual(Array(3).fill({ n: 16, units: 35 }))
    expect(await rows('SELECT toInt32(sum(count)) AS n FROM weir.decisions')).toEqual([{ n: 16 }])
  })
})

describe('every table that is inserted into, or that a view writes', () => {
  it('remembers the tokens of 10,000 inserts', async () => {
    const tables = await rows<{ name: string; engine_full: string }>(
      `SELECT name, engine_full FROM system.tables
       WHERE database = 'weir' AND engine LIKE '%MergeTree' AND name != 'schema_migrations' ORDER BY name`,
    )
    const forgetful = tables.filter(({ engine_full: e }) => !e.includes('non_replicated_deduplication_window = 10000'))
    expect(forgetful).toEqual([])
    expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['decisions', 'gaps', 'marks', 'outcomes']))
  })
})
