import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { algorithms, type Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { forFile, forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const server = await forFile(startServer(redisServer))

const deadlineMs = 25
/** Where a busy machine must not make the store give up. */
const patientMs = 2_000
/** A stopped process answers when it runs again; the client gives up a silent connection after a second. */
const recoveryMs = { timeout: 10_000, interval: 20 }

async function openStore(waitMs = deadlineMs): Promise<{ redis: Redis; store: RedisLimitStore }> {
  const redis = await openLimiterRedis(server.address)
  const periodBoundaries = createBoundaryCache()
  const store = await forTest(new RedisLimitStore({ redis, clock: systemClock, periodBoundaries, deadlineMs: waitMs }))
  await untilServed(store)
  return { redis, store }
}

const decide = (store: RedisLimitStore, ...limits: Limit[]) => store.decide(buildLimitRequest({ limits }))
const large = (onUnavailable: Limit['onUnavailable'], name = 'large') =>
  buildLimit({ name, size: 1_000_000, onUnavailable })

async function untilServed(store: RedisLimitStore): Promise<void> {
  await vi.waitFor(async () => expect((await decide(store, large('allow'))).reason).toBe('ok'), recoveryMs)
}

/** Asks until the breaker is open. */
async function untilDown(store: RedisLimitStore): Promise<void> {
  while (store.serversDown === 0) await decide(store, large('allow'))
}

function stopServer(): void {
  process.kill(server.pid(), 'SIGSTOP')
  onTestFinished(() => void process.kill(server.pid(), 'SIGCONT'))
}

/** As Linux says it; elsewhere a signal is believed to have come. */
function isStopped(): boolean {
  const file = `/proc/${server.pid()}/stat`
  return !existsSync(file) || / T \d/.test(readFileSync(file, 'utf8'))
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
      source: 'unavailable',
      deniedBy: '',
      exceededMask: 0,
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
    await untilDown(store)
    const callsBefore = store.counters.callSize.count
    const later = await Promise.all(Array.from({ length: 1_000 }, () => decide(store, large('allow'))))
    expect(later.every(({ reason, charged }) => reason === 'unavailable' && charged === 'no')).toBe(true)
    expect(store.counters.callSize.count).toBe(callsBefore)
  })

  test('is served again when it runs again, and its late reply is counted, not delivered', async () => {
    const { store } = await openStore()
    stopServer()
    const decision = await decide(store, large('allow'))
    process.kill(server.pid(), 'SIGCONT')
    expect(decision.reason).toBe('unavailable')
    await untilServed(store)
    // On a busy machine those may be late that ask whether it is served.
    expect(store.counters.lateReplies).toBeGreaterThanOrEqual(1)
  })
})

test('one call that is late opens nothing: the next ones are decided by Redis', async () => {
  const { store } = await openStore()
  const { breakerOpened } = store.counters
  stopServer()
  expect((await decide(store, large('allow'))).reason).toBe('unavailable')
  process.kill(server.pid(), 'SIGCONT')
  await untilServed(store)
  expect(store.counters.breakerOpened).toBe(breakerOpened)
})

test('a Redis that was killed and started again is served without a restart of this process', async () => {
  const { store } = await openStore()
  await server.kill('SIGKILL')
  expect(await decide(store, large('allow'))).toMatchObject({ reason: 'unavailable' })
  await server.restart()
  await untilServed(store)
})

test('the breaker opens with the third overdue call in a row, and an open one answers a thousand requests faster than one call takes', async () => {
  const { store } = await openStore()
  const { breakerOpened } = store.counters // a busy machine may have opened it before
  const startedMs = performance.now()
  stopServer()
  for (const isDown of [0, 0, 1]) {
    await decide(store, large('allow'))
    expect(store.serversDown).toBe(isDown)
  }
  expect(store.counters.breakerOpened).toBe(breakerOpened + 1)
  expect(performance.now() - startedMs).toBeLessThan(250)
  const requests = Array.from({ length: 1_000 }, () => buildLimitRequest({ limits: [large('allow')] }))
  const openMs = performance.now()
  await Promise.all(requests.map((request) => store.decide(request)))
  expect((performance.now() - openMs) / requests.length).toBeLessThan(0.05)
})

describe('a charge whose reply came too late', () => {
  /** Charges while the server is stopped, and lets it go on before the client gives up the connection. */
  async function chargeLate(store: RedisLimitStore, request: LimitRequest) {
    const { lateReplies } = store.counters
    stopServer()
    // On a busy machine a signal takes a moment, in which the server would still answer.
    await vi.waitFor(() => expect(isStopped()).toBe(true), recoveryMs)
    const decision = await store.decide(request)
    process.kill(server.pid(), 'SIGCONT')
    await vi.waitFor(() => expect(store.counters.lateReplies).toBeGreaterThan(lateReplies), recoveryMs)
    await untilServed(store)
    return decision
  }
  const usedOf = async (store: RedisLimitStore, limit: Limit) =>
    (await store.decide(buildLimitRequest({ limits: [limit], peek: true }))).limits[0]?.used

  test.each(algorithms)('is given back once if the client was turned away (%s)', async (algorithm) => {
    const { store } = await openStore()
    const answered = () => store.counters.lateRefunds + store.counters.lateRefundsLost
    const beTurnedAway = async () => {
      const limit = { ...large('deny', `late-${randomUUID()}`), algorithm, size: 100, capacity: 100 }
      const before = answered()
      expect(await chargeLate(store, buildLimitRequest({ limits: [limit] }))).toMatchObject({
        allowed: false,
        charged: 'unknown',
      })
      await vi.waitFor(() => expect(answered()).toBe(before + 1), recoveryMs)
      return limit
    }
    let limit = await beTurnedAway()
    // On a busy machine the refund is too late itself: it is not repeated, and counted as lost.
    while (store.counters.lateRefunds === 0) limit = await beTurnedAway()
    // A busy machine may make the store give up this look, too.
    await vi.waitFor(async () => expect(await usedOf(store, limit)).toBe(0), recoveryMs)
    expect(store.counters.lateRefunds).toBe(1)
  })

  test('stands if the client was admitted', async () => {
    const { store } = await openStore()
    const limit = large('allow', `late-${randomUUID()}`)
    expect(await chargeLate(store, buildLimitRequest({ limits: [limit] }))).toMatchObject({
      allowed: true,
      charged: 'unknown',
    })
    expect(await usedOf(store, limit)).toBe(1)
    expect(store.counters).toMatchObject({ lateRefunds: 0, lateRefundsLost: 0 })
  })

  test('stands under an idempotency key, and admits the next attempt', async () => {
    const { store } = await openStore()
    const limits = [large('deny', `late-${randomUUID()}`)]
    const request = buildLimitRequest({ limits, idempotency: { key: randomUUID(), id: 'first' } })
    expect((await chargeLate(store, request)).allowed).toBe(false)
    expect(await store.decide(request)).toMatchObject({ allowed: true, repeats: 'first', charged: 'no' })
    expect(store.counters.lateRefunds).toBe(0)
  })
})

test('a connection that dies under a call leaves the charge unknown, and what was not sent uncharged', async () => {
  const { store } = await openStore()
  stopServer()
  const sent = decide(store, large('deny'))
  await new Promise((resolve) => setImmediate(resolve))
  const waiting = decide(store, large('deny'))
  await server.kill('SIGKILL')
  onTestFinished(() => server.restart())
  expect([(await sent).charged, (await waiting).charged]).toEqual(['unknown', 'no'])
  expect((await decide(store, large('deny'))).charged).toBe('no')
})

test('a forgotten script and forgotten counts cost nobody a decision, and every reply reaches its own request', async () => {
  const { redis, store } = await openStore(patientMs)
  const limits = Array.from({ length: 20 }, (_, at) => buildLimit({ name: `flushed-${at}`, size: 1_000 + at }))
  for (const forget of [() => redis.script('FLUSH'), () => redis.flushall()]) {
    const forgotten = forget()
    const decisions = await Promise.all(limits.map((limit) => decide(store, limit)))
    await forgotten
    expect(decisions.map(({ reason }) => reason)).toEqual(limits.map(() => 'ok'))
    expect(decisions.map((decision) => decision.limits[0]?.size)).toEqual(limits.map(({ size }) => size))
  }
  expect(store.counters.scriptErrors).toEqual({})
})

test('a request that cannot be encoded fails alone, and the others of its call are decided', async () => {
  const { store } = await openStore(patientMs)
  const daily = buildLimit({ name: 'daily', span: { kind: 'period', unit: 'day' } })
  const wrong = buildLimitRequest({ limits: [daily], timeZone: 'Nowhere/Land' })
  const settled = await Promise.allSettled([
    decide(store, large('deny')),
    store.decide(wrong),
    decide(store, large('deny', 'other')),
  ])
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(settled[2]).toMatchObject({ value: { reason: 'ok' } })
})

test('two definitions of one limit in one call, as a change of policy brings, are both decided', async () => {
  const { store } = await openStore(patientMs)
  const name = `edited-${randomUUID()}`
  const decisions = await Promise.all([5, 7, 5, 7].map((size) => decide(store, buildLimit({ name, size }))))
  expect(decisions.map(({ reason }) => reason)).toEqual(['ok', 'ok', 'ok', 'ok'])
  expect(decisions.map(({ limits }) => limits[0]?.size)).toEqual([5, 7, 5, 7])
})

interface Refusal {
  readonly code: RegExp
  readonly provoke: (redis: Redis) => Promise<unknown>
  readonly repair: (redis: Redis) => Promise<unknown>
}

/** A full disk, as Redis sees one: it cannot write a snapshot, and stops taking writes. */
async function failSnapshot(redis: Redis): Promise<void> {
  await redis.config('SET', 'appendonly', 'no')
  await redis.config('SET', 'save', '3600 1')
  await mkdir(join(server.dir, 'data', 'dump.rdb'), { recursive: true }) // a folder stands where the file would go
  await redis.bgsave()
  await vi.waitFor(
    async () => expect(await redis.info('persistence')).toContain('rdb_last_bgsave_status:err'),
    recoveryMs,
  )
}

async function takeSnapshots(redis: Redis): Promise<void> {
  await redis.config('SET', 'save', '')
  await rm(join(server.dir, 'data', 'dump.rdb'), { recursive: true, force: true })
}

const refusals: readonly Refusal[] = [
  {
    code: /^OOM$/,
    provoke: (redis) => redis.config('SET', 'maxmemory', '1'),
    repair: (redis) => redis.config('SET', 'maxmemory', '0'),
  },
  { code: /^MISCONF$/, provoke: failSnapshot, repair: takeSnapshots },
  {
    code: /^(READONLY|MASTERDOWN)$/,
    provoke: (redis) => redis.replicaof('127.0.0.1', '1'),
    repair: (redis) => redis.replicaof('NO', 'ONE'),
  },
  {
    code: /^NOPERM$/,
    provoke: (redis) => redis.acl('SETUSER', 'default', '-evalsha', '-eval'),
    repair: (redis) => redis.acl('SETUSER', 'default', '+evalsha', '+eval'),
  },
  {
    code: /^BUSY$/,
    provoke: async (redis) => {
      await redis.config('SET', 'busy-reply-threshold', '1')
      const other = await openLimiterRedis(server.address)
      other.eval('while true do end', 0).catch(() => undefined)
      await vi.waitFor(async () => await expect(redis.get('x')).rejects.toThrow('BUSY'), recoveryMs)
    },
    repair: (redis) => redis.script('KILL'),
  },
]

test.each(refusals)(
  'a Redis that answers $code is named by counters and readiness, and nothing was charged',
  async ({ code, provoke, repair }) => {
    const { store } = await openStore()
    const other = await openLimiterRedis(server.address)
    await provoke(other)
    try {
      await vi.waitFor(async () => {
        expect(await decide(store, large('allow'))).toMatchObject({ reason: 'unavailable', charged: 'no' })
        expect(Object.keys(store.counters.scriptErrors)).toContainEqual(expect.stringMatching(code))
      }, recoveryMs)
      const { problem } = await store.checkHealth()
      expect(problem).toMatch(new RegExp(code.source.replaceAll(/[$^]/g, '')))
    } finally {
      await repair(other)
    }
    await untilServed(store)
  },
)

test('a queue that is full answers at once', async () => {
  const { store } = await openStore()
  stopServer()
  const decisions = Array.from({ length: 1_100 }, () => decide(store, large('allow')))
  const settled = await Promise.race([Promise.all(decisions.slice(1_024)), Promise.all(decisions.slice(0, 1_024))])
  expect(settled.length).toBe(76)
  await Promise.all(decisions)
})
