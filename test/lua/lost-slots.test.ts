import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const [size, expiresMs] = [2, 5_000]

test('slots that a gateway lost end in their time, however often others are refused and given back meanwhile', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const clock = { ms: 1_790_000_000_000 }
  const now = () => clock.ms
  const parts = { clock: { nowMs: now }, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000, now }
  const store = await forTest(new RedisLimitStore({ redis, ...parts }))
  const span = { kind: 'window', ms: expiresMs } as const
  const onExceed = { kind: 'charge' } as const
  const limit = buildLimit({ algorithm: 'concurrency', name: 'slots', size, capacity: size, span, onExceed })
  const request = buildLimitRequest({ scope: buildScope({ subject: `gateway-${randomUUID()}` }), limits: [limit] })
  const take = async () => {
    const { exceededMask, limits } = await store.decide(request)
    return { fits: exceededMask === 0, used: limits[0]?.used }
  }
  const giveBack = () => store.release({ request, atUs: 0 })
  const lostMs = clock.ms
  expect([await take(), await take()]).toEqual([
    { fits: true, used: 1 },
    { fits: true, used: 2 },
  ])
  for (; clock.ms < lostMs + expiresMs; clock.ms += 500) {
    const taken = await take()
    expect({ afterMs: clock.ms - lostMs, ...taken }).toEqual({ afterMs: clock.ms - lostMs, fits: false, used: 3 })
    await giveBack()
  }
  // Ends are whole seconds, rounded up.
  clock.ms += 1_000
  expect(await take()).toEqual({ fits: true, used: 1 })
  await giveBack()
  expect(await take()).toEqual({ fits: true, used: 1 })
})
