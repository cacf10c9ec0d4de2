import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { Leasing } from '@weir/redis/layers/lease.ts'
import { RedisLimitStore, type RedisLimitStoreOptions } from '@weir/redis/redis-limit-store.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const hourMs = 3_600_000
/** The middle of an hour, so that no window ends during a test. */
const middleMs = 1_790_000_000_000 - (1_790_000_000_000 % hourMs) + hourMs / 2

/** Four connections, each with its own lease: as four processes have it. */
async function openProcesses(options: Partial<RedisLimitStoreOptions> = { now: () => middleMs, deadlineMs: 5_000 }) {
  const open = async (): Promise<{ inner: RedisLimitStore; store: Leasing }> => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const periodBoundaries = createBoundaryCache()
    const inner = await forTest(new RedisLimitStore({ redis, clock: systemClock, periodBoundaries, ...options }))
    return { inner, store: new Leasing(inner, options.deadlineMs === undefined ? {} : options) }
  }
  const processes = [await open(), await open(), await open(), await open()] as const
  return { first: processes[0], stores: processes.map(({ store }) => store) }
}

const request = (limits: readonly Limit[], overrides: Partial<LimitRequest> = {}) =>
  buildLimitRequest({ scope: buildScope({ subject: randomUUID() }), limits, ...overrides })

const leased = (size: number, lease: number) =>
  buildLimit({ name: 'leased', size, lease, span: { kind: 'window', ms: hourMs } })

/** Every process asks with eight requests at a time, until each of those was refused `refusals` times. */
async function storm(stores: readonly LimitStore[], asked: LimitRequest, refusals: number): Promise<number> {
  const client = async (store: LimitStore) => {
    let admitted = 0
    for (let refused = 0; refused < refusals; ) {
      const { allowed, reason } = await store.decide(asked)
      expect(['ok', 'limit']).toContain(reason)
      if (allowed) admitted += 1
      else refused += 1
    }
    return admitted
  }
  const clients = stores.flatMap((store) => Array.from({ length: 8 }, () => client(store)))
  return (await Promise.all(clients)).reduce((sum, admitted) => sum + admitted, 0)
}

test('four processes that use all they took admit the size exactly, in far fewer calls', async () => {
  const { first, stores } = await openProcesses()
  const asked = request([leased(5_003, 50)])
  expect(await storm(stores, asked, 3)).toBe(5_003)
  expect(await first.inner.decide({ ...asked, peek: true })).toMatchObject({ limits: [{ used: 5_003, remaining: 0 }] })
  const calls = stores.reduce((sum, { counters }) => sum + counters.calls, 0)
  expect(calls).toBeLessThan(5_003 / 10)
})

test('one process that dies loses what it held, and the others admit the rest', async () => {
  const { stores } = await openProcesses()
  const asked = request([leased(1_000, 100)])
  const [killed, ...others] = stores
  expect(await killed?.decide(asked)).toMatchObject({ allowed: true })
  expect(await storm(others, asked, 3)).toBe(900)
})

test('over several windows none admits more than its size, by Redis’s clock', async () => {
  const { stores } = await openProcesses({})
  const windowMs = 250
  const asked = request([buildLimit({ size: 40, lease: 5, span: { kind: 'window', ms: windowMs } })])
  const perWindow = new Map<number, number>()
  const endMs = performance.now() + 6 * windowMs
  const client = async (store: LimitStore) => {
    while (performance.now() < endMs) {
      const { allowed, reason, atUs } = await store.decide(asked)
      // This machine's clock is Redis's here, and a unit from memory was used just now.
      const window = Math.floor((atUs > 0 ? atUs / 1_000 : systemClock.nowMs()) / windowMs)
      if (allowed && reason === 'ok') perWindow.set(window, (perWindow.get(window) ?? 0) + 1)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all(stores.flatMap((store) => [client(store), client(store)]))
  const most = Math.max(...perWindow.values())
  expect(most).toBeGreaterThan(20)
  expect(most).toBeLessThanOrEqual(40)
})
