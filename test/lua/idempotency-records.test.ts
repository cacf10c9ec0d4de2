import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { DecisionService } from '@weir/decide/decision-service.ts'
import { buildDecisionRequest } from '@weir/decide/testing/build-decision-request.ts'
import { memoryPorts } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { expect, test, vi } from 'vitest'
import { forFile, forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const server = await forFile(startServer(redisServer))

const policyText = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 100, window: 1h } }
subjects: { acme: { plan: free } }
`

/** One ingress process as far as its decisions, with a connection of its own to the Redis that all share. */
async function openProcess() {
  const redis = await openLimiterRedis(server.address)
  const clock = { nowMs: Date.now }
  const deadlineMs = 2_000
  const store = await forTest(
    new RedisLimitStore({ redis, clock, deadlineMs, periodBoundaries: createBoundaryCache() }),
  )
  const { policy, log } = memoryPorts(policyText)
  const admissions = new RedisIdempotencyRecords({ redis, deadlineMs: 20 })
  const decisionService = new DecisionService({ policy, store, log, clock, idempotencyRecords: admissions })
  const ask = (idempotencyKey: string | undefined, peek = false) =>
    decisionService.decide(buildDecisionRequest(policy.view, 'acme', { peek, idempotencyKey }))
  const used = async () => (await ask(undefined, true)).decision.limits[0]?.used ?? 0
  const admitted = () => log.records.filter(({ outcome }) => outcome === 'allow').map(({ id }) => id)
  return { redis, log, admissions, ask, used, admitted }
}

test('of one key whose record a stalled disk holds no other process makes a record, until it is certain that the disk does not', async () => {
  for (const isThere of [true, false]) {
    const key = `order-${isThere}`
    const [stalled, other] = [await openProcess(), await openProcess()]
    stalled.log.isOverdue = true
    expect((await stalled.ask(key)).decision.reason).toBe('journal_full')
    const put = { allowed: false, reason: 'unavailable', retryAfterMs: 1_000 }
    expect([(await other.ask(key)).decision, other.admitted()]).toMatchObject([put, []])
    const [held] = stalled.admitted()
    stalled.log.endStall(isThere)
    const repeat = await vi.waitUntil(
      async () => {
        const asked = await other.ask(key)
        return asked.decision.allowed ? asked : undefined
      },
      { timeout: 10_000 },
    )
    expect([repeat.id, other.admitted()]).toEqual(isThere ? [held, []] : [other.admitted()[0], [repeat.id]])
  }
})

test('many processes that meet a repeat at once record it once', async () => {
  const [full, ...others] = [await openProcess(), await openProcess(), await openProcess(), await openProcess()]
  if (full === undefined) throw new Error('no process')
  full.log.isFull = true
  await full.ask('order-3')
  const answers = await Promise.all(others.map((one) => one.ask('order-3')))
  const ids = others.flatMap((one) => one.admitted())
  expect(ids).toHaveLength(1)
  for (const { decision, id } of answers) {
    if (decision.allowed) expect(id).toBe(ids[0])
    else expect(decision).toMatchObject({ reason: 'unavailable', retryAfterMs: 1_000 })
  }
})

test('repeats at the same time in several processes are answered alike, with the first id', async () => {
  const processes = [await openProcess(), await openProcess(), await openProcess()]
  const answers = await Promise.all(processes.map((one) => one.ask('order-4')))
  const ids = processes.flatMap((one) => one.admitted())
  expect(ids).toHaveLength(1)
  expect(answers.map(({ decision, id }) => [decision.allowed, id])).toEqual(answers.map(() => [true, ids[0]]))
})

test('while Redis cannot be asked a repeat is told to come back, and a mark that is lost is counted', async () => {
  const one = await openProcess()
  one.redis.disconnect()
  expect(await one.admissions.claim('acme', 'an id')).toEqual({ kind: 'unknown' })
  one.admissions.mark('acme', 'an id', 'a record')
  await vi.waitFor(() => expect(one.admissions.marksLost).toBe(1))
})

test('what is kept expires', async () => {
  const { redis, ask } = await openProcess()
  await ask('order-5')
  await vi.waitFor(async () => expect(await redis.keys('*:_recorded:*')).not.toEqual([]))
  for (const key of await redis.keys('*:_recorded:*')) expect(await redis.pttl(key)).toBeGreaterThan(0)
})
