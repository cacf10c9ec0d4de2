import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forFile, forTest } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { openLimiterRedis } from '../../support/test-redis.ts'

const server = await forFile(startServer(redisServer))

async function openStore(aheadMs = 0) {
  const redis = await openLimiterRedis(server.address)
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const store = await forTest(
    new RedisLimitStore({ redis, clock, periodBoundaries: createBoundaryCache(), deadlineMs: 1_000 }),
  )
  return { redis, store }
}

test('a Redis as it should be has nothing to be said of', async () => {
  const { store } = await openStore()
  expect(await store.checkHealth()).toEqual({ problem: undefined, warning: undefined })
})

test.each(['allkeys-lru', 'volatile-ttl'])('one that evicts (%s) is warned of, and serves', async (policy) => {
  const { redis, store } = await openStore()
  onTestFinished(async () => void (await redis.config('SET', 'maxmemory-policy', 'noeviction')))
  await redis.config('SET', 'maxmemory-policy', policy)
  const { problem, warning } = await store.checkHealth()
  expect([problem, warning]).toEqual([undefined, expect.stringContaining(policy)])
})

test.each([
  [900, 'behind'],
  [-900, 'ahead'],
])('a clock that is more than 500 ms off is warned of (%i ms)', async (aheadMs, word) => {
  const { store } = await openStore(aheadMs)
  const { problem, warning } = await store.checkHealth()
  expect([problem, warning]).toEqual([undefined, expect.stringContaining(word)])
})

test('a clock that is 300 ms off is not', async () => {
  const { store } = await openStore(300)
  expect((await store.checkHealth()).warning).toBeUndefined()
})

test('one that may not run the script is named before any request', async () => {
  const { redis, store } = await openStore()
  onTestFinished(async () => void (await redis.acl('SETUSER', 'default', '+evalsha')))
  await redis.acl('SETUSER', 'default', '-evalsha')
  expect((await store.checkHealth()).problem).toMatch(/cannot run the script.*NOPERM/)
})

test('one that is gone is named', async () => {
  const { redis, store } = await openStore()
  redis.disconnect()
  await new Promise((resolve) => redis.once('end', resolve))
  expect((await store.checkHealth()).problem).toMatch(/connection to 127\.0\.0\.1:\d+ is end/)
})
