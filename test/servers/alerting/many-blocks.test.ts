import { randomUUID } from 'node:crypto'
import { noCounts } from '@weir/alerting/metrics.ts'
import { blockAlertsMax, createClaimStore } from '@weir/alerting/raise/claim-store.ts'
import { AlertRaiser } from '@weir/alerting/raise/raise-alerts.ts'
import type { Crossing } from '@weir/alerting/types.ts'
import { findFurtherBlocks } from '@weir/alerting/watch/further-blocks.ts'
import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { claimKey } from '@weir/core/alerts/claim.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { afterAll, expect, inject, test } from 'vitest'

const redis = connectRedis(inject('redisUrl'), { role: 'claims', onError: () => undefined })
await new Promise((ready) => redis.once('ready', ready))
afterAll(() => redis.disconnect())

const hourMs = 3_600_000
/** Each test has an hour of its own, because what an hour counted is found by every process. */
let hourStartMs = Date.parse('2026-11-21T12:00:00Z')

function open() {
  hourStartMs += 24 * hourMs
  const startMs = hourStartMs
  const clock = { ms: startMs + 1_000, nowMs: () => clock.ms }
  const published: AlertV1[] = []
  const claims = createClaimStore(redis)
  let crashAt = ''
  const start = () =>
    new AlertRaiser({
      claims,
      clock,
      counters: noCounts(),
      history: { raised: async () => new Set(), keepLate: async () => undefined },
      publish: async (alerts) => void published.push(...alerts),
      crash: (step) => {
        if (step === crashAt) throw new Error(`killed at ${step}`)
      },
    })
  const subject = randomUUID()
  const block = (ip: string): Crossing => ({
    kind: 'blocked',
    subject,
    limit: 'otp',
    size: 5,
    used: 5,
    decisionId: randomUUID(),
    decidedMs: clock.nowMs(),
    by: { ip },
    startMs: clock.ms,
    endMs: clock.ms + 120_000,
    lifetimeMs: 120_000,
    isRecurring: true,
    thresholds: [
      {
        percent: 100,
        key: claimKey({ subject, limit: 'otp', size: 5, threshold: 'blocked', periodStart: 'cooldown', by: { ip } }),
      },
    ],
  })
  const endHour = async () => {
    clock.ms = startMs + hourMs + 61_000
    await start().raise(await findFurtherBlocks(claims, clock.ms))
  }
  const kill = (step: string) => {
    crashAt = step
  }
  return { clock, claims, published, start, block, endHour, kill, startMs }
}

const addresses = (count: number) => Array.from({ length: count }, (_, n) => `10.0.${n >> 8}.${n & 255}`)

test('10,000 addresses that are blocked under one key are 100 alerts, and one that says how many more there were', async () => {
  const { published, start, block, endHour, kill, startMs } = open()
  const blocks = addresses(10_000).map(block)
  for (let at = 0; at < blocks.length; at += 1_000) {
    const batch = blocks.slice(at, at + 1_000)
    // Every batch is read twice, and a process dies in the first of them.
    kill(at === 0 ? 'claim' : '')
    await start()
      .raise(batch)
      .catch(() => undefined)
    kill('')
    await start().raise(batch)
  }
  expect(published).toHaveLength(blockAlertsMax)
  expect(new Set(published.map(({ data }) => JSON.stringify('by' in data && data.by))).size).toBe(blockAlertsMax)
  await endHour()
  await endHour()
  const [last, ...more] = published.slice(blockAlertsMax)
  expect(more).toEqual([])
  expect(last).toMatchObject({ type: 'weir.limit.blocked', data: { limit: 'otp', size: 5, more: 9_900 } })
  expect(last?.data).toMatchObject({ until: new Date(startMs + hourMs).toISOString() })
  expect(last?.data).not.toHaveProperty('by')
})

test('the next hour has alerts for single addresses again, and an hour of a hundred says nothing of more', async () => {
  const { clock, published, start, block, endHour, startMs } = open()
  await start().raise(addresses(100).map(block))
  await endHour()
  expect(published).toHaveLength(100)
  expect(Math.floor(clock.ms / hourMs) * hourMs).toBe(startMs + hourMs)
  await start().raise([block('10.1.0.0')])
  expect(published.at(-1)?.data).toMatchObject({ by: { ip: '10.1.0.0' } })
})

test('an hour is told only when it is over, however many processes ask', async () => {
  const { clock, claims, start, block, published } = open()
  await start().raise(addresses(102).map(block))
  expect(await findFurtherBlocks(claims, clock.ms)).toEqual([])
  clock.ms += 2 * hourMs
  const found = await findFurtherBlocks(claims, clock.ms)
  expect(found.map(({ more }) => more)).toEqual([2])
  await Promise.all([start().raise(found), start().raise(found)])
  expect(new Set(published.slice(100).map(({ id }) => id)).size).toBe(1)
})
