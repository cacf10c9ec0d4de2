import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createDisabledEndpoints } from '@weir/alerting/deliver/disabled-endpoints.ts'
import { createDispatcher, jobIdOf } from '@weir/alerting/deliver/dispatcher.ts'
import { createClaimStore } from '@weir/alerting/raise/claim-store.ts'
import type { DeliveryJob } from '@weir/alerting/types.ts'
import { createEvaluationLock } from '@weir/alerting/watch/watch-rates.ts'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { algorithms } from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import type { Target } from '@weir/policy/policy.ts'
import { redisProblem } from '@weir/redis/connection-state.ts'
import { DataLossDetector } from '@weir/redis/data-loss-detector.ts'
import { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import { createProcessCount } from '@weir/redis/layers/process-count.ts'
import { createLimitAdmin } from '@weir/redis/limit-admin.ts'
import { createPauses } from '@weir/redis/pauses.ts'
import { createQuotaCounts } from '@weir/redis/quota-counts.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { RedisUse } from '@weir/redis/redis-rights.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import { expect, vi } from 'vitest'

/*
 * All that a user of Redis does in its service, through the modules that do it. Each piece of work fails where a right
 * is missing that it needs. `admin` may do everything, and has what the work finds.
 */

const deadlineMs = 1_000
const periodBoundaries = createBoundaryCache()
const day = { kind: 'period', unit: 'day' } as const

async function until(isDone: () => boolean | Promise<boolean>, what: string): Promise<void> {
  if ((await waitUntil(isDone, { deadlineMs, everyMs: 10 })) !== true) throw new Error(`${what} did not happen`)
}

/** Decides, refunds and settles by every algorithm, under idempotency keys too. The connection is a new one. */
async function decide(redis: Redis): Promise<void> {
  redis.disconnect(true)
  await new Promise((resolve) => redis.once('close', resolve))
  const store = new RedisLimitStore({ redis, clock: systemClock, periodBoundaries, deadlineMs })
  try {
    await until(() => store.serversDown === 0, 'the breaker closing')
    const { warning } = await store.checkHealth()
    expect(warning).toMatch(/allkeys-lru.*|$/)
    expect(warning).toContain('allkeys-lru')
    for (const algorithm of algorithms) {
      const scope = buildScope({ subject: `user-${randomUUID()}` })
      // Settling gives a slot back; of units it leaves two.
      const size = countsInFlight({ algorithm }) ? 1 : 3
      const limits = [buildLimit({ name: algorithm, algorithm, size, blockMs: 60_000 })]
      const request = { ...buildLimitRequest({ scope, limits }), idempotency: { key: 'k', id: 'first' } }
      const reservation = { id: uuidv7(Date.now()), ttlMs: 600_000, context: 'x', settleMax: 100 }
      const first = await store.decide({ ...request, reservation })
      expect(first).toMatchObject({ allowed: true, charged: 'yes' })
      expect(await store.decide(request)).toMatchObject({ repeats: 'first' })
      const settlement = { subject: scope.subject, id: reservation.id, cost: 2 }
      expect(await new RedisSettlements({ redis, owner: 'one' }).settle(settlement)).toMatchObject({ kind: 'settled' })
      const plain = buildLimitRequest({ scope, limits })
      const second = await store.decide(plain)
      expect(await store.refund(plain, second)).toBe(true)
      const rest = await Promise.all([1, 2, 3].map(() => store.decide(plain)))
      expect(rest.map(({ reason }) => reason)).toEqual(['ok', 'limit', 'blocked'])
    }
    expect(store.counters.scriptErrors).toEqual({})
  } finally {
    store.close()
  }
}

/** A log that has outgrown its header is read and written in parts, and kept for longer from time to time. */
async function decideByLongLog(redis: Redis): Promise<void> {
  let nowMs = Date.now()
  const now = () => nowMs
  const store = new RedisLimitStore({ redis, now, deadlineMs, clock: systemClock, periodBoundaries })
  const limits = [buildLimit({ name: 'long', algorithm: 'sliding_log', size: 500 })]
  const scope = buildScope({ subject: `user-${randomUUID()}` })
  for (const cost of [200, 1, 100]) {
    expect(await store.decide(buildLimitRequest({ scope, limits, cost }))).toMatchObject({ reason: 'ok' })
    nowMs += 45_000
  }
  store.close()
}

async function ingress(redis: Redis): Promise<void> {
  await decide(redis)
  await decideByLongLog(redis)
  const subject = `user-${randomUUID()}`
  const admissions = new RedisIdempotencyRecords({ redis, deadlineMs: 1 })
  admissions.hold(subject, 'held')()
  await until(async () => (await admissions.claim(subject, 'held')).kind === 'claimed', 'the end of a hold')
  admissions.mark(subject, 'marked', 'record')
  expect(await admissions.claim(subject, 'marked')).toEqual({ kind: 'recorded', recordId: 'record' })
  const paused = await createPauses({ redis }).pause(buildLimit(), buildScope({ subject }), 5_000)
  expect(paused).toBeGreaterThan(0)
  const processes = createProcessCount({ redis })
  await processes.start()
  await processes.stop()
  expect(processes.counters.failures).toBe(0)
}

async function console(redis: Redis, admin: Redis): Promise<void> {
  const servers = { serverOf: () => redis, all: () => [redis] }
  const subject = `user-${randomUUID()}`
  const key = `weir:1:{${subject}}:quota`
  const counts = createQuotaCounts(servers)
  const endMs = Math.ceil(Date.now() / 86_400_000) * 86_400_000
  expect(await counts.raise([{ key, endMs, units: 5 } as never])).toMatchObject([{ outcome: 'raised' }])
  expect(await counts.find(new Set(['quota']) as never)).toContain(key)
  for (const algorithm of algorithms) {
    const limit = buildLimit({ name: 'quota', algorithm, ...(algorithm === 'fixed_window' ? { span: day } : {}) })
    const limits = createLimitAdmin(() => redis)
    const found = await limits.find(limit, { subject })
    if (algorithm === 'fixed_window') expect(found?.keys).toEqual([key])
    const scope = { subject, timeZone: 'UTC', anchor: 1 }
    await limits.peek(limit, algorithm === 'fixed_window' ? key : `${key}-${algorithm}`, scope, 1)
    await limits.reset(limit, [key])
  }
  const sentinel = 'weir:1:{_here-0}'
  const runId = /^run_id:(\w+)/m.exec(await admin.info('server'))?.[1] ?? ''
  for (const [held, isDone] of [
    [runId, async () => (await admin.pttl(sentinel)) > 60_000],
    ['another', async () => (await admin.get(sentinel))?.startsWith('restoring') === true],
  ] as const) {
    await admin.set(sentinel, held, 'PX', 10_000)
    const watch = new DataLossDetector({
      servers,
      restore: async () => undefined,
      onLoss: () => undefined,
      onFault: () => undefined,
    })
    await until(isDone, `the look at ${held}`).finally(() => watch.stop())
  }
}

async function claims(redis: Redis, admin: Redis): Promise<void> {
  const warned = vi.spyOn(globalThis.console, 'warn').mockImplementation(() => undefined)
  redis.disconnect(true)
  await new Promise((resolve) => redis.once('ready', resolve))
  const warnings = warned.mock.calls.length // ioredis could not ask whether Redis has read its data and is the master
  warned.mockRestore()
  expect([await redisProblem(redis), warnings]).toEqual([undefined, 0])
  const store = createClaimStore(redis)
  const claim = { key: `quota_alert:{${randomUUID()}}:day`, lifetimeMs: 60_000, occurrenceId: '' }
  expect(await store.claim([claim])).toMatchObject([{ state: 'acquired' }])
  await store.finish([claim])
  expect(await store.claim([claim])).toMatchObject([{ state: 'done' }])
  await admin.del('weir:1:watches:turn', 'weir:1:watches:looked')
  const turns = createEvaluationLock(redis)
  expect(await turns.take()).toEqual(new Map())
  await turns.storeEvaluated('denials', 5)
  expect(await admin.pttl('weir:1:watches:looked')).toBeGreaterThan(0)
  const key = `weir:1:{${randomUUID()}}:quota`
  expect(await redis.getrange(key, 0, 0)).toBe('')
  const scope = { subject: 'acme', timeZone: 'UTC', anchor: 1 }
  for (const algorithm of algorithms) {
    const { now } = await createLimitAdmin(() => redis).peek(buildLimit({ algorithm }), key, scope, 0)
    expect(now.limits).toMatchObject([{ used: 0 }])
  }
}

const prefix = 'bull:weir-deliveries:'

/** What other processes have left: a job whose process died, one under way, and one that arrived long ago. */
async function leaveJobs(admin: Redis, dead: DeliveryJob): Promise<void> {
  const id = jobIdOf(dead)
  const told = { name: 'x', data: JSON.stringify(dead), opts: '{}', timestamp: 1, delay: 0, priority: 0 }
  await admin.hset(`${prefix}${id}`, told)
  await admin.hset(`${prefix}old`, { ...told, finishedOn: 1 })
  await admin.rpush(`${prefix}active`, id, 'under way elsewhere')
  await admin.sadd(`${prefix}stalled`, id)
  await admin.zadd(`${prefix}completed`, 1, 'old')
}

/**
 * Jobs that arrive, are put off, reject, are given up, had lost their process; an old one goes. And an endpoint is
 * disabled and enabled.
 */
async function queue(redis: Redis, admin: Redis): Promise<void> {
  const endpoint = { name: 'ops', type: 'webhook', url: 'https://ops.example/' } as Target
  const used = { redis, publish: async () => undefined, clock: systemClock, log: createLogger('test', 'silent') }
  const endpoints = createDisabledEndpoints(used)
  await endpoints.disable(endpoint, 'gone')
  expect(await createDisabledEndpoints(used).reasonFor(endpoint)).toContain('gone')
  await endpoints.enable(endpoint)
  const wait = { requestedMs: 0, attempts: 0, dueMs: 0, giveUpMs: Date.now() + 60_000 }
  const build = (name: string): DeliveryJob => ({ ...wait, alert: { id: name, type: 'x' } as never, endpoint: name })
  await leaveJobs(admin, build('dead'))
  await admin.script('FLUSH')
  const outcomes: string[] = []
  const faults: string[] = []
  const warn = (about: { err: Error }, event: string) => event === 'queue' && faults.push(about.err.message)
  const dispatcher = createDispatcher({
    redis,
    clock: systemClock,
    log: { warn } as never,
    async deliver(job) {
      outcomes.push(`${job.endpoint} ${job.attempts}`)
      if (job.endpoint === 'rejects') throw new Error('test')
      if (job.endpoint === 'given-up') return { kind: 'given_up', reason: 'test' }
      if (job.endpoint !== 'later' || job.attempts > 0) return { kind: 'over' }
      return { kind: 'later', job: { ...job, attempts: 1 }, atMs: Date.now() + 50 }
    },
  })
  try {
    const jobs = ['over', 'later', 'rejects', 'given-up'].map(build)
    await dispatcher.enqueue([...jobs, { ...build('later-still'), dueMs: Date.now() + 60_000 }])
    expect(await dispatcher.missing(jobs)).toEqual([])
    const wanted = ['dead 0', 'given-up 0', 'later 0', 'later 1', 'over 0', 'rejects 0']
    await until(() => isDeepStrictEqual([...new Set(outcomes)].sort(), wanted), 'the deliveries')
    const count = (set: string) => admin.zcard(`${prefix}${set}`)
    const sets = async () => [await count('completed'), await count('failed'), await count('delayed')]
    await until(async () => isDeepStrictEqual(await sets(), [3, 1, 2]), 'what becomes of the jobs')
    expect(await admin.exists(`${prefix}old`)).toBe(0)
    await admin.del(`${prefix}delayed`)
    await dispatcher.enqueue([build('last')])
    await until(async () => (await count('completed')) === 4, 'the last delivery')
    expect(faults).toEqual([])
  } finally {
    await withTimeout(
      dispatcher.close().catch(() => undefined),
      500,
      undefined,
    ) // it waits for what Redis refuses
    await admin.del(...(await admin.keys('bull:*')), 'none')
  }
}

/** By use: everything that is done there. Rejects where it cannot be done. */
export const workOf: Readonly<Record<RedisUse, (redis: Redis, admin: Redis) => Promise<void>>> = {
  ingress,
  console,
  claims,
  queue,
}
