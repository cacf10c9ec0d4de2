import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { DenyCache } from '@weir/redis/layers/deny-cache.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { Redis } from 'ioredis'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

/** Of its own, so that nobody else's calls are counted. */
let server: RunningServer
beforeAll(async () => {
  server = await startServer(redisServer)
  return () => server.close()
})

async function open() {
  const redis = await openLimiterRedis(server.address)
  const periodBoundaries = createBoundaryCache()
  const inner = new RedisLimitStore({ redis, clock: systemClock, periodBoundaries, deadlineMs: 5_000 })
  onTestFinished(() => inner.close())
  let nowMs = 0
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { redis, inner, store: new DenyCache(inner, { monotonicMs: () => nowMs }), pass }
}

/** Scripts that Redis ran. */
async function calls(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats')
  const counts = [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

const daily = (name: string, size: number) => buildLimit({ name, size, span: { kind: 'window', ms: 86_400_000 } })

test('a storm of refusals costs Redis nothing, and the counts stay exact', async () => {
  const { redis, inner, store, pass } = await open()
  const scope = buildScope({ subject: randomUUID() })
  const limits = [daily('wide', 1_000), daily('narrow', 20)]
  const request = buildLimitRequest({ scope, limits })
  const first = await Promise.all(Array.from({ length: 100 }, () => store.decide(request)))
  expect(first.filter(({ allowed }) => allowed).length).toBe(20)
  const before = await calls(redis)
  const refused = await Promise.all(Array.from({ length: 10_000 }, () => store.decide(request)))
  expect(refused.every(({ source, deniedBy }) => source === 'deny_cache' && deniedBy === 'narrow')).toBe(true)
  expect(await calls(redis)).toBe(before)
  pass(1_000)
  await store.decide(request)
  await vi.waitFor(async () => expect(await calls(redis)).toBe(before + 1))
  expect(await inner.decide({ ...request, peek: true })).toMatchObject({ limits: [{ used: 20 }, { used: 20 }] })
})

test('a subject denied by a limit of its own leaves no other subject denied', async () => {
  const { store } = await open()
  const limits = [daily('own', 1)]
  const by = (subject: string) => buildLimitRequest({ scope: buildScope({ subject }), limits })
  const [one, other] = [randomUUID(), randomUUID()]
  await store.decide(by(one))
  expect(await store.decide(by(one))).toMatchObject({ allowed: false })
  expect(await store.decide(by(other))).toMatchObject({ allowed: true })
})
test('what was given back is admitted after a second at most', async () => {
  const { store, pass } = await open()
  const request = buildLimitRequest({ scope: buildScope({ subject: randomUUID() }), limits: [daily('own', 1)] })
  const charged = await store.decide(request)
  await store.decide(request)
  expect(await store.refund(request, charged)).toBe(true)
  expect(await store.decide(request)).toMatchObject({ allowed: false })
  pass(1_000)
  expect(await store.decide(request)).toMatchObject({ allowed: true })
})
