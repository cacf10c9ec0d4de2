import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock, isDataError } from '@weir/clickhouse/insert.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { askPeriodUsage } from '@weir/console/money/billing-queries.ts'
import { askUsage } from '@weir/console/usage/usage-queries.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { describe, expect, it } from 'vitest'
import { forFile } from '../support/opened.ts'
import { startOwnClickhouse } from '../support/servers/own-clickhouse.ts'

const folder = join(projectRoot, 'infra/clickhouse/migrations')

const server = await forFile(startOwnClickhouse())
const client = await forFile(connectClickhouse(server.address, 'test'))

const rows = <T>(query: string) => readRows<T>(client, query)

describe('migrations', () => {
  it('are applied once, in order, by several at the same time', async () => {
    const migrations = await readMigrations(folder)
    const applied = await Promise.all([1, 2, 3].map(() => migrate(client, migrations)))
    expect(applied.flat().sort()).toEqual(migrations.map(({ name }) => name).sort())
    expect(await migrate(client, migrations)).toEqual([])
  })

  it('refuse to go on when an applied file was edited, and name it', async () => {
    const copy = await mkdtemp(join(tmpdir(), 'weir-migrations-'))
    await cp(folder, copy, { recursive: true })
    await writeFile(join(copy, '0001_decisions.sql'), 'SELECT 1;\n')
    await expect(migrate(client, await readMigrations(copy))).rejects.toMatchObject({
      code: 'MIGRATION_CHANGED',
      message: expect.stringContaining('1 decisions'),
    })
    await writeFile(join(copy, '9999_hole.sql'), 'SELECT 1;\n')
    await expect(readMigrations(copy)).rejects.toThrow('9999_hole.sql')
    await rm(copy, { recursive: true })
    expect(await rows("SELECT name FROM system.tables WHERE database = 'weir' AND name = 'schema_lock'")).toEqual([])
  })
})

const journal = randomUUID()

/** Lines as metering inserts them. */
function lines(
  subject: string,
  decisions: readonly {
    ts: string
    outcome?: 'allow' | 'deny'
    cost?: number
    count?: number
    used?: number
    shadowedBy?: string
  }[],
) {
  const text = decisions.map(({ ts, outcome = 'allow', cost = 1, count = 1, used = 1, shadowedBy = '' }, seq) => {
    const tsMs = Date.parse(ts)
    const isAllowed = outcome === 'allow'
    const denied = { reason: 'limit', charged: 'no', deniedBy: 'minute' } as const
    const open = encodeDecisionOpen(
      decisionInput({
        id: uuidv7(tsMs),
        tsMs,
        subject,
        route: 'POST /v1/search',
        method: 'POST',
        cost,
        count,
        outcome,
        ...(isAllowed ? {} : denied),
        shadowedBy,
        limits: [{ name: 'minute', size: 100, used, remaining: 100 - used, resetMs: 5 }],
      }),
    )
    return `${open},"journal":"${journal}","seq":${seq},"partition":1,"offset":${seq}}\n`
  })
  return Buffer.from(text.join(''))
}

const sumsOf = (subject: string) =>
  Promise.all(
    ['decisions', 'usage_1m', 'usage_15m'].map(async (table) => {
      const [row] = await rows<{ n: number; units: number }>(
        `SELECT toUInt32(sum(count)) AS n, toUInt32(${table === 'decisions' ? 'sum(cost * count)' : 'sum(cost)'}) AS units FROM weir.${table} WHERE subject = '${subject}'`,
      )
      return [table, row?.n, row?.units]
    }),
  )

describe('a block of decisions', () => {
  it('is counted once in raw and in every rollup, though it is inserted twice', async () => {
    const subject = `s-${randomUUID()}`
    const block = {
      table: 'weir.decisions',
      dedupToken: randomUUID(),
      lines: lines(subject, [
        { ts: '2026-11-20T10:00:01Z', cost: 5, used: 75 },
        { ts: '2026-11-20T10:00:59Z', outcome: 'deny', count: 40, used: 50 },
        { ts: '2026-11-20T10:16:00Z', shadowedBy: 'minute' },
      ]),
    }
    await insertBlock(client, block)
    await insertBlock(client, block)
    expect(await sumsOf(subject)).toEqual([
      ['decisions', 42, 46],
      ['usage_1m', 42, 46],
      ['usage_15m', 42, 46],
    ])
    const met = { limit: 'minute', size: '100' }
    expect(
      await rows(`SELECT * EXCEPT (ts, subject) FROM weir.limits_15m FINAL WHERE subject = '${subject}' ORDER BY ts`),
    ).toEqual([
      { ...met, used: '75', share: 0.75, count: '41', refused: '40', shadow_refused: '0', cost: '5' },
      { ...met, used: '1', share: 0.01, count: '1', refused: '0', shadow_refused: '1', cost: '1' },
    ])
  })

  it('of other rows is counted, though it is equal to the last byte but for its token', async () => {
    const subject = `s-${randomUUID()}`
    const block = { table: 'weir.decisions', lines: lines(subject, [{ ts: '2026-11-20T10:00:01Z' }]) }
    await insertBlock(client, { ...block, dedupToken: randomUUID() })
    await insertBlock(client, { ...block, dedupToken: randomUUID() })
    expect(await sumsOf(subject)).toEqual([
      ['decisions', 2, 2],
      ['usage_1m', 2, 2],
      ['usage_15m', 2, 2],
    ])
  })

  it.each([
    ['broken JSON', '{"v":1,"ts":nonsense}\n'],
    ['a broken time', '{"v":1,"ts":"some day","outcome":"allow","count":1}\n'],
    ['an outcome that does not exist', '{"v":1,"ts":"2026-11-20 10:00:00.000","outcome":"maybe","count":1}\n'],
    ['a count of nothing', '{"v":1,"ts":"2026-11-20 10:00:00.000","outcome":"allow","count":0}\n'],
    ['a count below zero', '{"v":1,"ts":"2026-11-20 10:00:00.000","outcome":"allow","count":-1,"subject":7}\n'],
  ])('is refused whole for %s, as the fault of the data', async (_, bad) => {
    const subject = `s-${randomUUID()}`
    const good = lines(subject, [{ ts: '2026-11-20T10:00:01Z' }])
    const block = { table: 'weir.decisions', dedupToken: randomUUID(), lines: Buffer.concat([good, Buffer.from(bad)]) }
    const error = await insertBlock(client, block).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect([isDataError(error), String(error)]).toEqual([true, expect.any(String)])
    expect((await sumsOf(subject)).map(([, n]) => n)).toEqual([0, 0, 0])
  })

  it('that meets a missing table is not the fault of the data', async () => {
    const block = { table: 'weir.nowhere', dedupToken: '1', lines: Buffer.from('{}\n') }
    const error = await insertBlock(client, block).catch((thrown: unknown) => thrown)
    expect(isDataError(error)).toBe(false)
  })
})

/** The filters of a question about one subject. */
const onlyOf = (subject: string) => ({ only: { subject: [subject] }, except: {}, subjectPrefix: undefined })

describe('usage', () => {
  it('adds up quarter hours to the days of any time zone', async () => {
    const subject = `s-${randomUUID()}`
    // Midnight in Kathmandu is 18:15 UTC.
    const decisions = [
      { ts: '2026-11-20T18:14:59Z' },
      { ts: '2026-11-20T18:15:00Z', cost: 3 },
      { ts: '2026-11-21T18:14:00Z' },
    ]
    await insertBlock(client, { table: 'weir.decisions', dedupToken: subject, lines: lines(subject, decisions) })
    const question = {
      ...onlyOf(subject),
      fromMs: Date.parse('2026-11-20T00:00:00Z'),
      toMs: Date.parse('2026-11-22T00:00:00Z'),
      by: ['route'] as const,
      step: 'day' as const,
      timeZone: 'Asia/Kathmandu',
    }
    const day = (ts: string, count: string, cost: string) =>
      expect.objectContaining({ ts, route: 'POST /v1/search', count, allowed: count, denied: '0', cost })
    expect(await askUsage(client, Reach.everybody, question)).toEqual([
      day('2026-11-20T00:00:00+05:45', '1', '1'),
      day('2026-11-21T00:00:00+05:45', '2', '4'),
    ])
    for (const step of ['minute', 'quarter_hour', 'hour', 'month', 'total'] as const) {
      const answer = await askUsage(client, Reach.everybody, { ...question, by: [], step })
      expect([step, answer.reduce((sum, row) => sum + Number(row.count), 0)]).toEqual([step, 3])
    }
  })

  it('about more units than 64 bits hold, each of the largest cost, adds all of them up', async () => {
    const subject = `s-${randomUUID()}`
    const decisions = ['10:00', '10:15', '10:30', '10:45'].map((time) => ({
      ts: `2026-11-20T${time}:00Z`,
      cost: costMax,
      count: 9_200_000_000,
    }))
    await insertBlock(client, { table: 'weir.decisions', dedupToken: subject, lines: lines(subject, decisions) })
    const span = { fromMs: Date.parse('2026-11-20T00:00:00Z'), toMs: Date.parse('2026-11-21T00:00:00Z') }
    const question = { ...onlyOf(subject), ...span, by: [], timeZone: 'UTC' }
    for (const step of ['minute', 'quarter_hour', 'hour', 'day', 'total'] as const) {
      const answer = await askUsage(client, Reach.everybody, { ...question, step })
      const cost = answer.reduce((sum, row) => sum + BigInt(row.cost), 0n)
      expect([step, cost]).toEqual([step, 36_800_000_000_000_000_000n])
    }
    const [units] = await rows<{ subject: string; units: string }>(
      `SELECT subject, toString(sum(toInt128(cost))) AS units FROM weir.usage_15m WHERE subject = '${subject}' GROUP BY subject`,
    )
    expect(units?.units).toBe('36800000000000000000')
  })

  it('that is priced is what allowed decisions of the subject used in the period, by route, beyond 64 bits too', async () => {
    const subject = `s-${randomUUID()}`
    const dear = { cost: costMax, count: 9_200_000_000 }
    // The month begins at midnight in Kathmandu, which is 18:15 UTC.
    const decisions = [
      { ts: '2026-10-31T18:14:59.999Z', cost: 7 },
      { ts: '2026-10-31T18:15:00Z', ...dear },
      { ts: '2026-11-10T00:00:00Z', outcome: 'deny' as const, count: 50 },
      { ts: '2026-11-30T18:14:59.999Z', ...dear },
      { ts: '2026-11-30T18:15:00Z', cost: 9 },
    ]
    await insertBlock(client, { table: 'weir.decisions', dedupToken: subject, lines: lines(subject, decisions) })
    const other = `s-${randomUUID()}`
    const same = [{ ts: '2026-11-10T00:00:00Z' }]
    await insertBlock(client, { table: 'weir.decisions', dedupToken: other, lines: lines(other, same) })
    const [fromMs, toMs] = periodBoundaries('month', 'Asia/Kathmandu', 1, Date.parse('2026-11-10T00:00:00Z'))
    expect(await askPeriodUsage(client, Reach.everybody, subject, { fromMs, toMs })).toEqual([
      { route: 'POST /v1/search', units: 18_400_000_000_000_000_000n, decisions: 18_400_000_000n },
    ])
  })

  it('of a subject whose name is SQL is a question about that subject', async () => {
    const question = { fromMs: 0, toMs: 1, by: [], step: 'total' as const, timeZone: 'UTC' }
    const [row] = await askUsage(client, Reach.everybody, { ...question, ...onlyOf("x' OR 1=1 --") })
    expect(row).toMatchObject({ count: '0' })
  })
})
