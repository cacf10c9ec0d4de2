import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { LocalFallback } from '@weir/redis/layers/local-fallback.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

let server: RunningServer
beforeAll(async () => {
  server = await startServer(redisServer)
  return () => server.close()
})

const processes = 4
const size = 20
const soon = { timeout: 10_000, interval: 20 }

/** As one of four processes has it. */
async function openProcess(): Promise<LimitStore> {
  const redis = await openLimiterRedis(server.address)
  const periodBoundaries = createBoundaryCache()
  const inner = new RedisLimitStore({ redis, clock: systemClock, periodBoundaries })
  onTestFinished(() => inner.close())
  return new LocalFallback(inner, { clock: systemClock, periodBoundaries, processes: () => processes })
}

const probe = () =>
  buildLimitRequest({ scope: buildScope({ subject: randomUUID() }), limits: [buildLimit({ size: 1_000_000 })] })

async function untilServed(stores: readonly LimitStore[]): Promise<void> {
  await vi.waitFor(async () => {
    const decisions = await Promise.all(stores.map((store) => store.decide(probe())))
    expect(decisions.map(({ reason }) => reason)).toEqual(stores.map(() => 'ok'))
  }, soon)
}

const daily = (subject: string) =>
  buildLimitRequest({
    scope: buildScope({ subject }),
    limits: [buildLimit({ size, span: { kind: 'window', ms: 86_400_000 }, onUnavailable: 'local' })],
  })

async function admitted(store: LimitStore, subject: string, times: number): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: times }, () => store.decide(daily(subject))))
  return decisions.filter(({ allowed }) => allowed).length
}

test('with Redis stopped four processes admit the size together; stopped again in the same window, nothing more', async () => {
  const stores = await Promise.all(Array.from({ length: processes }, openProcess))
  await untilServed(stores)
  const subject = randomUUID()
  const perProcess: number[][] = []
  for (let outage = 0; outage < 2; outage += 1) {
    process.kill(server.pid(), 'SIGSTOP')
    try {
      perProcess.push(await Promise.all(stores.map((store) => admitted(store, subject, 15))))
    } finally {
      process.kill(server.pid(), 'SIGCONT')
    }
    await untilServed(stores)
  }
  expect(perProcess).toEqual([
    [5, 5, 5, 5],
    [0, 0, 0, 0],
  ])
})

test('with Redis killed the share decides, and once it is back Redis decides', async () => {
  const store = await openProcess()
  await untilServed([store])
  const subject = randomUUID()
  await server.kill('SIGKILL')
  expect(await admitted(store, subject, 15)).toBe(5)
  expect(await store.decide(daily(subject))).toMatchObject({ reason: 'limit', charged: 'no', atUs: 0 })
  await server.restart()
  await untilServed([store])
  expect(await store.decide(daily(subject))).toMatchObject({ allowed: true, reason: 'ok', charged: 'yes' })
})
