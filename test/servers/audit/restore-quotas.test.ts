import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { decisionInput, rowsOf } from '../../support/audit/decisions.ts'
import { startAuditStack } from '../../support/audit/stack.ts'
import { forFile } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const policy = `
version: 1
plans: { free: { limits: [minute, day, month, per-route] }, ai: { limits: [tokens, calls] } }
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  day: { algorithm: fixed_window, size: 5000, period: day }
  month: { algorithm: fixed_window, size: 90000, period: month }
  per-route: { algorithm: fixed_window, size: 400, period: day, by: [subject, route] }
  per-team: { algorithm: fixed_window, size: 400, period: day, by: [subject, "header:x-team"], applies: all }
  tokens: { algorithm: fixed_window, size: 90000, period: month, unit: tokens }
  calls: { algorithm: fixed_window, size: 90000, period: day, unit: requests }
subjects:
  acme: { plan: free }
  gpt: { plan: ai }
  himal: { plan: free, timeZone: Asia/Kathmandu }
`

const stack = await forFile(startAuditStack())

const quotas = (timeZone = 'UTC') => [
  { name: 'minute', unit: 'minute', timeZone } as const,
  { name: 'day', unit: 'day', timeZone } as const,
  { name: 'month', unit: 'month', timeZone } as const,
  { name: 'per-route', unit: 'day', timeZone } as const,
]

async function record(decisions: Parameters<typeof rowsOf>[0]): Promise<void> {
  await insertBlock(stack.clickhouse, { table: 'weir.decisions', dedupToken: randomUUID(), lines: rowsOf(decisions) })
}

/** Units of a count as they stand in Redis, or undefined. */
async function usedOf(key: string): Promise<number | undefined> {
  const value = await stack.redis.getBuffer(key)
  return value?.length === 17 ? value.readDoubleBE(9) : undefined
}

const standing = async () =>
  Object.fromEntries(
    await Promise.all(
      [
        'weir:1:{acme}:day',
        'weir:1:{acme}:month',
        'weir:1:{acme}:per-route:route=GET%20%2Fv1%2Fthings',
        'weir:1:{acme}:per-route:route=POST%20%2Fv1%2Fsearch',
        'weir:1:{himal}:day',
        'weir:1:{himal}:month',
        'weir:1:{gpt}:tokens',
        'weir:1:{gpt}:calls',
      ].map(async (key) => [key.slice('weir:1:'.length), await usedOf(key)]),
    ),
  )

/** What the decisions below come to. */
const restored = {
  '{acme}:day': 17,
  '{acme}:month': 17,
  '{acme}:per-route:route=GET%20%2Fv1%2Fthings': 7,
  '{acme}:per-route:route=POST%20%2Fv1%2Fsearch': 10,
  '{himal}:day': 4,
  '{himal}:month': 4,
  '{gpt}:tokens': 177,
  '{gpt}:calls': 3,
}

describe('an empty Redis', () => {
  it('that is new is no loss', async () => {
    const admin = await startConsole(stack.environment)
    onTestFinished(async () => {
      await admin.close()
      await stack.redis.flushall()
    })
    expect((await admin.ask('PUT /v1/policy', policy)).status).toBe(200)
    const isLookedAt = async () => (await admin.readLog()).includes('quotas restored')
    await until(isLookedAt, 30_000)
    expect(await readMetric(admin.ops, 'weir_redis_losses_total')).toBe(0)
  })
})

describe('a Redis that lost everything in mid-day', () => {
  let admin: RunningConsole
  beforeAll(async () => {
    const nowMs = Date.now()
    const yesterdayMs = nowMs - 40 * 86_400_000
    const search = { route: 'POST /v1/search', method: 'POST', cost: 5, reason: 'ok' } as const
    const acme = { subject: 'acme', tsMs: nowMs }
    const corrected = decisionInput({ ...acme, cost: 8 }, quotas())
    // As `refundOn` records it: without limits, and written again by the process that took over.
    const correction = { corrects: corrected.id, adjustment: -5 }
    const refund = decisionInput({ ...acme, id: uuidv7(nowMs), cost: 0, count: 0, charged: 'no', correction })
    const ofUnits = [
      { name: 'tokens', unit: 'month' },
      { name: 'calls', unit: 'day' },
    ] as const
    const gpt = { subject: 'gpt', tsMs: nowMs, cost: 9 }
    const held = decisionInput({ ...gpt, held: { tokens: 400 } }, ofUnits)
    const used = { held: { tokens: 400 }, units: { tokens: 120 }, basis: 'reported' } as const
    const settled = { ...gpt, id: uuidv7(nowMs), cost: 0, count: 0, correction: { corrects: held.id, adjustment: 0 } }
    await record([
      held,
      decisionInput({ ...settled, ...used }, ofUnits),
      decisionInput({ ...gpt, held: { tokens: 50 } }, ofUnits),
      decisionInput({ ...gpt, units: { tokens: 7 }, basis: 'reported' }, ofUnits),
      ...Array.from({ length: 4 }, () => decisionInput(acme, quotas())),
      decisionInput({ ...acme, ...search }, quotas()),
      decisionInput({ ...acme, ...search }, quotas()),
      corrected,
      refund,
      refund,
      // Neither denied nor doubtful decisions have used anything for certain, and last month's day is over.
      decisionInput({ ...acme, outcome: 'deny', charged: 'no', reason: 'limit', deniedBy: 'day' }, quotas()),
      decisionInput({ ...acme, charged: 'unknown' }, quotas()),
      decisionInput({ ...acme, tsMs: yesterdayMs }, quotas()),
      decisionInput({ subject: 'himal', tsMs: nowMs, cost: 4 }, quotas('Asia/Kathmandu')),
    ])
    const file = join(stack.kafka.dir, 'weir.yaml')
    await writeFile(file, policy)
    admin = await startConsole(stack.environment)
    const { status } = await admin.ask('PUT /v1/policy', policy)
    expect(status).toBe(200)
  })
  afterAll(() => admin?.close())

  const isRestored = async () => JSON.stringify(await standing()) === JSON.stringify(restored)

  it('has its daily and monthly quotas back at ClickHouse’s sums within ten seconds, each time', async () => {
    await waitUntil(isRestored, { deadlineMs: 30_000 })
    expect(await standing()).toEqual(restored)
    for (const _ of [1, 2]) {
      await stack.redis.flushall()
      await waitUntil(isRestored, { deadlineMs: 10_000 })
      expect(await standing()).toEqual(restored)
    }
    expect(await admin.readLog()).toContain('per-team counts by header:x-team')
    // The first was found when the console started: it is one because units were used.
    expect(await readMetric(admin.ops, 'weir_redis_losses_total')).toBe(3)
  })

  it('lists what is held and was never settled', async () => {
    const { body } = await admin.ask('GET /v1/decisions?unsettled=true')
    expect(body).toMatchObject({ rows: [{ subject: 'gpt', held: { tokens: 50 }, units: {} }] })
    const { body: corrected } = await admin.ask('GET /v1/decisions?corrected=true&subject=gpt')
    const correction = { adjustment: 0, units: { tokens: 120 } }
    expect(corrected).toMatchObject({ rows: [{ held: { tokens: 400 }, corrections: [correction] }] })
  })

  it('has them back at once when a person asks for it, also without a console', async () => {
    const file = join(stack.kafka.dir, 'weir.yaml')
    await stack.redis.flushall()
    const { code, stdout, stderr } = await runWeir(['restore-quotas', '--policy', file, '--json'], stack.environment)
    expect([code, stderr]).toEqual([0, expect.stringContaining('per-team unchanged: it counts by header:x-team')])
    expect(JSON.parse(stdout)).toMatchObject({ counts: 9, left: [{ name: 'per-team' }] })
    expect(await standing()).toEqual(restored)
    const again = await runWeir(['restore-quotas'], { ...stack.environment, ...admin.environment })
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('9 counts checked, 0 raised')])
  })

  it('has no quota back that was reset, and the others', async () => {
    await stack.redis.flushall()
    await until(isRestored, 10_000)
    const { status } = await admin.ask('POST /v1/subjects/acme/limits/reset', { limit: 'day' })
    expect(status).toBe(200)
    const isCopied = async () =>
      (await stack.rows("SELECT 1 FROM weir.policy_history WHERE position(body, 'forgotten') > 0")).length > 0
    await until(isCopied, 10_000)
    await stack.redis.flushall()
    const isBack = async () => (await usedOf('weir:1:{acme}:month')) === 17
    await until(isBack, 10_000)
    expect(await standing()).toEqual({ ...restored, '{acme}:day': undefined })
  })

  it('goes on counting meanwhile, and what is already counted again is not lowered', async () => {
    await stack.redis.flushall()
    const midnightMs = Math.ceil((Date.now() + 1) / 86_400_000) * 86_400_000
    const state = Buffer.alloc(17)
    state.write('f', 0)
    state.writeDoubleBE(midnightMs, 1)
    state.writeDoubleBE(30, 9)
    await stack.redis.set('weir:1:{acme}:day', state, 'PXAT', midnightMs)
    const isBack = async () => (await usedOf('weir:1:{acme}:month')) === 17
    await until(isBack, 10_000)
    expect(await usedOf('weir:1:{acme}:day')).toBe(30)
  })
})
