import { systemClock } from '@weir/core/clock.ts'
import { createBoundaryCache } from '@weir/core/policy/boundary-cache.ts'
import { createMemoryLimitStore } from '@weir/redis/memory-limit-store.ts'
import { createRedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { inject } from 'vitest'
import { limitStoreContract } from '../support/limit-store-contract.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

/** A test's clock, shared by the store's calendar and the script. */
function openClock() {
  let nowMs = systemClock.nowMs()
  return {
    clock: { nowMs: () => nowMs },
    setNowMs: (next: number) => {
      nowMs = next
    },
  }
}

limitStoreContract('redis', async () => {
  const { clock, setNowMs } = openClock()
  const redis = await openLimiterRedis(inject('redisUrl'))
  const periodBoundaries = createBoundaryCache()
  const store = createRedisLimitStore({ redis, clock, periodBoundaries, deadlineMs: 10_000, now: clock.nowMs })
  return { store, setNowMs }
})

limitStoreContract('memory', async () => {
  const { clock, setNowMs } = openClock()
  return { store: createMemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() }), setNowMs }
})
