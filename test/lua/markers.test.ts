import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { markersName } from '@weir/core/limits/exceeding.ts'
import { type LimitRequest, settleMsMax } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { openLimiterRedis } from '../support/test-redis.ts'

const context = JSON.stringify({ keyId: 'k1', plan: 'free', route: 'POST /v1/search', method: 'POST', tsMs: 1 })
const limits = [
  buildLimit({ size: 100_000 }),
  buildLimit({ name: 'day', size: 500_000, span: { kind: 'period', unit: 'day' } }),
]

async function open(markersMax: number) {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const clock = { ms: 1_790_000_030_000 }
  const now = () => clock.ms
  const common = { redis, clock: { nowMs: now }, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000, now }
  const stores = [new RedisLimitStore({ ...common, markersMax }), new RedisLimitStore({ ...common, markersMax })]
  const [store, other] = stores
  if (store === undefined || other === undefined) throw new Error('two stores were made')
  onTestFinished(() => stores.forEach((one) => void one.close()))
  const subject = `marked-${randomUUID()}`
  const plain: LimitRequest = buildLimitRequest({ scope: buildScope({ subject }), limits })
  const settled = (ttlMs = 60_000) => ({ ...plain, reservation: { id: uuidv7(now()), ttlMs, context } })
  const once = () => ({ ...plain, idempotency: { key: randomUUID(), id: uuidv7(now()) } })
  const used = async () => (await store.decide({ ...plain, cost: 0, peek: true })).limits[0]?.used
  const keys = async () => (await redis.keys(`weir:1:{${subject}}:*`)).sort()
  const tally = `weir:1:{${subject}}:_markers`
  return { redis, clock, now, store, other, subject, plain, settled, once, used, keys, tally }
}

const crowded = {
  allowed: false,
  reason: 'limit',
  deniedBy: markersName,
  charged: 'no',
  exceededMask: 0,
  isCached: true,
}

test('a subject has at most so many markers over all processes, and a request that would leave one more charges nothing', async () => {
  const { store, other, settled, once, plain, used, keys } = await open(20)
  const requests = Array.from({ length: 30 }, (_, at) => (at % 2 === 0 ? settled() : once()))
  const decisions = await Promise.all(requests.map((one, at) => (at % 3 === 0 ? other : store).decide(one)))
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(20)
  for (const refused of decisions.filter(({ allowed }) => !allowed)) expect(refused).toMatchObject(crowded)
  const both = { ...once(), reservation: settled().reservation }
  expect(await store.decide(both)).toMatchObject(crowded)
  expect([await used(), (await keys()).length]).toEqual([20, 20 + 1 + limits.length])
  expect(await store.decide(plain)).toMatchObject({ allowed: true, reason: 'ok' })
})

test('an idempotency key that was admitted is answered again, however many markers there are', async () => {
  const { store, once } = await open(1)
  const first = once()
  await store.decide(first)
  expect(await store.decide(once())).toMatchObject(crowded)
  expect(await store.decide(first)).toMatchObject({ allowed: true, repeats: first.idempotency.id })
})

test('a request without an idempotency key that is not to be settled has no key beside those of its limits', async () => {
  const { store, plain, keys } = await open(20)
  await store.decide(plain)
  expect(await keys()).toHaveLength(limits.length)
})

test('waiting as long as a refusal says makes room for a marker, and not before any has expired', async () => {
  for (const ttlMs of [1_000, 60_000, 900_000, settleMsMax]) {
    const { store, settled, clock } = await open(3)
    for (let count = 0; count < 3; count += 1) {
      await store.decide(settled(ttlMs))
      clock.ms += 1_500
    }
    const refused = await store.decide(settled(ttlMs))
    expect(refused).toMatchObject(crowded)
    expect(refused.retryAfterMs).toBeGreaterThanOrEqual(ttlMs + 900_000 - 4_500)
    expect(refused.retryAfterMs).toBeLessThanOrEqual((ttlMs + 900_000) * 1.125)
    clock.ms += refused.retryAfterMs - 1
    expect(await store.decide(settled(ttlMs))).toMatchObject(crowded)
    clock.ms += 1
    expect(await store.decide(settled(ttlMs))).toMatchObject({ allowed: true })
  }
})

test('a marker that is kept longer because it was settled still counts', async () => {
  const { redis, store, subject, settled, clock, now } = await open(2)
  const settlements = new RedisSettlements({ redis, owner: 'one', now, answerMs: 20_000 })
  const requests = [settled(1_000), settled(1_000)]
  for (const request of requests) await store.decide(request)
  for (const { reservation } of requests) await settlements.settle({ subject, id: reservation.id, cost: 2 })
  clock.ms += 890_000
  expect(await store.decide(settled(1_000))).toMatchObject(crowded)
})

test('the count of markers expires with them, and stays small whatever times they are kept for', async () => {
  const { redis, store, settled, tally, clock } = await open(1_000_000)
  for (let ttlMs = 1_000; ttlMs < settleMsMax; ttlMs = Math.ceil(ttlMs * 1.01)) {
    clock.ms += 7_000
    await store.decide(settled(ttlMs))
  }
  expect(await redis.strlen(tally)).toBeLessThanOrEqual(2_001)
  expect(await redis.pttl(tally)).toBeGreaterThan(settleMsMax * 0.98)
})

test('a marker takes at most the bytes in Redis that docs/limits.md says', async () => {
  const { redis, store, subject, settled, once, keys, now } = await open(100)
  const settlements = new RedisSettlements({ redis, owner: randomUUID(), now, answerMs: 20_000 })
  const requests = [settled(), settled()]
  for (const request of [...requests, once()]) await store.decide(request)
  await settlements.settle({ subject, id: requests[0]?.reservation.id ?? '', cost: 500 })
  new RedisIdempotencyRecords({ redis, deadlineMs: 20_000 }).mark(subject, uuidv7(now()), uuidv7(now()))
  await vi.waitFor(async () => expect((await keys()).some((key) => key.includes('_recorded'))).toBe(true))
  const found: Record<string, number[]> = {}
  for (const key of await keys()) {
    const kind = key.replace(/.*}:(\w+).*/, '$1')
    found[kind] = [...(found[kind] ?? []), Number(await redis.memory('USAGE', key))].sort((a, b) => a - b)
  }
  const { _once: [once1 = 0] = [], _recorded: [recorded = 0] = [], _settle: [open1 = 0, settled1 = 0] = [] } = found
  expect(once1 + recorded).toBeLessThanOrEqual(500)
  expect(open1).toBeLessThanOrEqual(650)
  expect(settled1).toBeLessThanOrEqual(900)
})
