import { systemClock } from '@weir/core/clock.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { createBoundaryCache } from '@weir/core/policy/boundary-cache.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createRedisLimitStore, type RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { Redis } from 'ioredis'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { buildLimit, buildLimitRequest } from '../support/builders/limit.ts'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

let server: RunningServer
beforeAll(async () => {
  server = await startServer(redisServer)
  return () => server.close()
})

const deadlineMs = 25
/** A stopped process answers when it runs again; the client gives up a silent connection after a second. */
const recoveryMs = { timeout: 10_000, interval: 20 }

async function openStore(): Promise<{ redis: Redis; store: RedisLimitStore }> {
  const redis = await openLimiterRedis(server.address)
  const periodBoundaries = createBoundaryCache()
  const store = createRedisLimitStore({ redis, clock: systemClock, periodBoundaries, deadlineMs })
  onTestFinished(() => store.close())
  await untilServed(store)
  return { redis, store }
}

const decide = (store: RedisLimitStore, ...limits: Limit[]) => store.decide(buildLimitRequest({ limits }))
const large = (onUnavailable: Limit['onUnavailable'], name = 'large') =>
  buildLimit({ name, size: 1_000_000, onUnavailable })

async function untilServed(store: RedisLimitStore): Promise<void> {
  await vi.waitFor(async () => expect((await decide(store, large('allow'))).reason).toBe('ok'), recoveryMs)
}

function stopServer(): void {
  process.kill(server.pid(), 'SIGSTOP')
  onTestFinished(() => void process.kill(server.pid(), 'SIGCONT'))
}

describe('a Redis that is stopped', () => {
  test('is given up at the deadline, and the charge is unknown', async () => {
    const { store } = await openStore()
    stopServer()
    const startedMs = performance.now()
    const decision = await decide(store, large('allow'))
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(deadlineMs - 2)
    expect(decision).toEqual({
      allowed: true,
      reason: 'unavailable',
      deniedBy: '',
      refusedBits: 0,
      shadowedBy: '',
      charged: 'unknown',
      retryAfterMs: 0,
      atUs: 0,
      repeats: '',
      limits: [],
    })
  })

  test('holds up nobody else: what waits and what comes later is answered without it, and was certainly not charged', async () => {
    const { store } = await openStore()
    stopServer()
    const first = decide(store, large('allow'))
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = Array.from({ length: 40 }, () => decide(store, large('allow')))
    expect((await first).charged).toBe('unknown')
    expect((await Promise.all(waiting)).every(({ charged }) => charged === 'no')).toBe(true)
    const callsBefore = store.counters.calls
    const later = await Promise.all(Array.from({ length: 1_000 }, () => decide(store, large('allow'))))
    expect(later.every(({ reason, charged }) => reason === 'unavailable' && charged === 'no')).toBe(true)
    expect(store.counters.calls).toBe(callsBefore)
  })

  test('is served again when it runs again, and its late reply is counted, not delivered', async () => {
    const { store } = await openStore()
    process.kill(server.pid(), 'SIGSTOP')
    const decision = await decide(store, large('allow'))
    process.kill(server.pid(), 'SIGCONT')
    expect(decision.reason).toBe('unavailable')
    await untilServed(store)
    expect(store.counters.lateReplies).toBe(1)
  })
})

test('one limit that says deny refuses the request while Redis is gone, whatever the others say', async () => {
  const { redis, store } = await openStore()
  redis.disconnect()
  expect(await decide(store, large('allow'), large('deny', 'strict'))).toMatchObject({
    allowed: false,
    reason: 'unavailable',
    deniedBy: 'strict',
    charged: 'no',
    retryAfterMs: 1_000,
  })
  expect(await decide(store, large('allow'))).toMatchObject({ allowed: true, reason: 'unavailable' })
})

test('a Redis that was killed and started again is served without a restart of this process', async () => {
  const { store } = await openStore()
  await server.kill('SIGKILL')
  expect(await decide(store, large('allow'))).toMatchObject({ reason: 'unavailable' })
  await server.restart()
  await untilServed(store)
})

test('a Redis out of memory refuses by name, and nothing was charged', async () => {
  const { redis, store } = await openStore()
  onTestFinished(async () => void (await redis.config('SET', 'maxmemory', '0')))
  await redis.config('SET', 'maxmemory', '1')
  expect(await decide(store, large('allow'))).toMatchObject({ reason: 'unavailable', charged: 'no' })
  expect(store.counters.scriptErrors).toEqual({ OOM: 1 })
})

test('a Redis that became a replica refuses by name, and nothing was charged', async () => {
  const { redis, store } = await openStore()
  onTestFinished(async () => {
    const other = await openLimiterRedis(server.address)
    await other.replicaof('NO', 'ONE')
  })
  await redis.replicaof('127.0.0.1', '1')
  const decision = await decide(store, large('allow'))
  expect(decision).toMatchObject({ reason: 'unavailable', charged: 'no' })
  expect(Object.keys(store.counters.scriptErrors)).toEqual([expect.stringMatching(/^(READONLY|MASTERDOWN)$/)])
})

test('a queue that is full answers at once', async () => {
  const { store } = await openStore()
  stopServer()
  const decisions = Array.from({ length: 1_100 }, () => decide(store, large('allow')))
  const settled = await Promise.race([Promise.all(decisions.slice(1_024)), Promise.all(decisions.slice(0, 1_024))])
  expect(settled.length).toBe(76)
  await Promise.all(decisions)
})
