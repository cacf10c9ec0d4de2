import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { createAddressCardinalityLimit } from '@weir/redis/layers/address-cardinality-limit.ts'
import { createDenyCache } from '@weir/redis/layers/deny-cache.ts'
import { Leasing } from '@weir/redis/layers/lease.ts'
import { createLocalFallback } from '@weir/redis/layers/local-fallback.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { MemoryLimitStore } from '@weir/redis/testing/memory-limit-store.ts'
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

type TestClock = ReturnType<typeof openClock>['clock']

async function openRedisStore(clock: TestClock): Promise<LimitStore> {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const periodBoundaries = createBoundaryCache()
  return new RedisLimitStore({ redis, clock, periodBoundaries, deadlineMs: 10_000, now: clock.nowMs })
}

async function openMemoryStore(clock: TestClock): Promise<LimitStore> {
  return new MemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() })
}

/** Everything that stands between the doors and a store, in the order of the ingress. */
function surround(store: LimitStore, clock: TestClock): LimitStore {
  const monotonicMs = clock.nowMs
  const periodBoundaries = createBoundaryCache()
  const withFallback = createLocalFallback(store, { clock, periodBoundaries, processes: () => 1 })
  const leasing = new Leasing(withFallback, { monotonicMs })
  return createAddressCardinalityLimit(createDenyCache(leasing, { monotonicMs }), { monotonicMs })
}

for (const [name, open] of [
  ['redis', openRedisStore],
  ['memory', openMemoryStore],
] as const) {
  limitStoreContract(name, async () => {
    const { clock, setNowMs } = openClock()
    return { store: await open(clock), setNowMs }
  })
  limitStoreContract(`${name}, with everything around it`, async () => {
    const { clock, setNowMs } = openClock()
    return { store: surround(await open(clock), clock), setNowMs }
  })
}
