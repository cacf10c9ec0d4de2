import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import type { Redis } from 'ioredis'
import { expect, inject, test } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const stepBackMsMax = 2_000
/** The script's clock and PTTL are read one after the other. */
const toleranceMs = 1_000
const windowed = buildLimit({ name: 'windowed', size: 100, span: { kind: 'window', ms: 60_000 } })
const daily = buildLimit({ name: 'daily', size: 100, span: { kind: 'period', unit: 'day' } })
const nowMs = 1_790_000_000_000 - (1_790_000_000_000 % 60_000)
const boundaries = [nowMs - 1_000, nowMs + 3_600_000, nowMs + 7_200_000] as const

async function expectExpiry(redis: Redis, key: string | undefined, leftMs: number): Promise<void> {
  const ttlMs = await redis.pttl(key ?? '')
  expect(ttlMs).toBeLessThanOrEqual(leftMs + stepBackMsMax)
  expect(ttlMs).toBeGreaterThan(leftMs + stepBackMsMax - toleranceMs)
}

test('every key expires with its span and a step back of the clock, however often it is written', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const engine = createRedisEngine(redis)
  const request = buildLimitRequest({ limits: [windowed, daily] })
  for (const requests of [[request, request], [request], [request, request]]) {
    await engine.decide({ requests, nowMs, boundaries })
    const keys = await engine.keys()
    expect(keys.length).toBe(2)
    await expectExpiry(
      redis,
      keys.find((key) => key.endsWith('windowed')),
      60_000,
    )
    await expectExpiry(
      redis,
      keys.find((key) => key.endsWith('daily')),
      3_600_000,
    )
  }
})

test('a new window in an old key moves its expiry', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const engine = createRedisEngine(redis)
  const requests = [buildLimitRequest({ limits: [windowed] })]
  await engine.decide({ requests, nowMs: nowMs + 59_000 })
  await engine.decide({ requests, nowMs: nowMs + 60_000 })
  const [key] = await engine.keys()
  await expectExpiry(redis, key, 60_000)
})

test('a key without expiry, or one that holds something else, gets one with its next span', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const engine = createRedisEngine(redis)
  const requests = [buildLimitRequest({ limits: [windowed] })]
  await engine.decide({ requests, nowMs })
  const [key = ''] = await engine.keys()
  await redis.set(key, 'something else')
  const { outcomes } = await engine.decide({ requests, nowMs })
  expect(outcomes).toMatchObject([{ allowed: true, limits: [{ used: 1 }] }])
  await expectExpiry(redis, key, 60_000)
})

test.each([
  ['sliding_window', 120_000],
  ['sliding_log', 60_000],
  ['token_bucket', 60_000],
] as const)(
  'a key of %s expires not before it means nothing, and not long after, however often it is written',
  async (algorithm, leftMs) => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const engine = createRedisEngine(redis)
    const limit = buildLimit({ algorithm, size: 100, span: { kind: 'window', ms: 60_000 } })
    const request = buildLimitRequest({ limits: [limit], cost: 25 })
    for (const requests of [[request, request], [request], [request]]) {
      await engine.decide({ requests, nowMs })
      const [key = ''] = await engine.keys()
      const { outcomes } = await engine.decide({ requests: [{ ...request, peek: true }], nowMs })
      const [outcome] = outcomes
      const resetMs = outcome !== undefined && 'limits' in outcome ? (outcome.limits[0]?.resetMs ?? 0) : 0
      const ttlMs = await redis.pttl(key)
      expect(ttlMs).toBeGreaterThan(resetMs + stepBackMsMax - toleranceMs)
      expect(ttlMs).toBeLessThanOrEqual(leftMs + stepBackMsMax + leftMs / 2)
    }
  },
)
