import { randomUUID } from 'node:crypto'
import { systemClock } from '@weir/core/clock.ts'
import { createBoundaryCache } from '@weir/core/policy/boundary-cache.ts'
import { createRedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { expect, inject, test } from 'vitest'
import { buildLimit, buildLimitRequest, buildScope } from '../support/builders/limit.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const storeCount = 8
const requestsPerStore = 150

test('1,200 requests over 8 connections at one instant are admitted exactly 137 times, and other limits count only those', async () => {
  const scope = buildScope({ subject: randomUUID() })
  const limits = [buildLimit({ name: 'wide', size: 10_000 }), buildLimit({ name: 'narrow', size: 137 })]
  const stores = await Promise.all(
    Array.from({ length: storeCount }, async () =>
      createRedisLimitStore({
        redis: await openLimiterRedis(inject('redisUrl')),
        clock: systemClock,
        periodBoundaries: createBoundaryCache(),
        deadlineMs: 10_000,
        now: () => 1_790_000_000_000,
      }),
    ),
  )
  const decisions = await Promise.all(
    stores.flatMap((store) =>
      Array.from({ length: requestsPerStore }, () => store.decide(buildLimitRequest({ scope, limits }))),
    ),
  )
  expect(decisions.filter(({ allowed }) => allowed).length).toBe(137)
  expect(decisions.filter(({ reason }) => reason === 'limit').length).toBe(storeCount * requestsPerStore - 137)
  const [wide] = decisions.at(-1)?.limits ?? []
  expect(wide?.used).toBe(137)
})
