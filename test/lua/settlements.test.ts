import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { algorithms, type Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, Reservation } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { settlementKey } from '@weir/redis/keys.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
const quarterMs = 900_000

/** A store and two processes that settle, all by the test's clock. */
async function open() {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const clock = { ms: 1_790_000_000_000 - (1_790_000_000_000 % dayMs) + 30_000 }
  const now = () => clock.ms
  const periodBoundaries = createBoundaryCache()
  const store = await forTest(
    new RedisLimitStore({ redis, clock: { nowMs: now }, periodBoundaries, deadlineMs: 20_000, now }),
  )
  const subject = `settled-${randomUUID()}`
  const ask = (overrides: Partial<LimitRequest>, settle: Partial<Reservation> = {}) => {
    const reservation = { id: uuidv7(now()), ttlMs: quarterMs, context: '{"route":"POST /v1/ü"}', ...settle }
    return { ...buildLimitRequest({ scope: buildScope({ subject }), ...overrides }), reservation }
  }
  const used = async (request: LimitRequest) =>
    (await store.decide({ ...request, cost: 0, peek: true })).limits.map((state) => state.used)
  const processOf = (owner: string) => new RedisSettlements({ redis, owner, now, answerMs: 20_000 })
  return { redis, clock, store, subject, ask, used, processOf, settlements: processOf('one') }
}

const limitOf = (algorithm: Limit['algorithm'], overrides: Partial<Limit> = {}) =>
  buildLimit({
    name: algorithm,
    algorithm,
    size: 100,
    capacity: 100,
    span: { kind: 'window', ms: dayMs },
    ...overrides,
  })

/** Of those that count a cost. */
const everyLimit = algorithms
  .filter((algorithm) => !countsInFlight({ algorithm }))
  .map((algorithm) => limitOf(algorithm))

test('a decision is settled to less or to more on every limit that it was charged to, of every algorithm', async () => {
  const { store, subject, ask, used, settlements, clock } = await open()
  const shadow = buildLimit({
    name: 'shadow',
    size: 5,
    capacity: 5,
    mode: 'shadow',
    span: { kind: 'window', ms: dayMs },
  })
  const first = ask({ cost: 40, limits: [...everyLimit, shadow] })
  const second = ask({ cost: 2, limits: [...everyLimit, shadow] })
  expect(await store.decide(first)).toMatchObject({ allowed: true, charged: 'yes', shadowedBy: 'shadow' })
  await store.decide(second)
  clock.ms += 1
  const lower = await settlements.settle({ subject, id: first.reservation.id, cost: 10 })
  expect(lower).toMatchObject({
    kind: 'settled',
    cost: 10,
    chargedCost: 40,
    context: '{"route":"POST /v1/ü"}',
    isRecordPending: true,
    settledAtUs: clock.ms * 1_000,
    limits: everyLimit.map(({ name }) => ({ name, size: 100, used: 12, remaining: 88 })),
  })
  expect(await used(first)).toEqual([12, 12, 12, 12, 2])
  await settlements.settle({ subject, id: second.reservation.id, cost: 32 })
  expect(await used(first)).toEqual([42, 42, 42, 42, 32])
})

test('what was used beyond a limit counts: windows hold all of it, a log and a bucket are full', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const request = ask({ cost: 60, limits: everyLimit }, { settleMax: 250 })
  await store.decide(request)
  await settlements.settle({ subject, id: request.reservation.id, cost: 250 })
  expect(await used(request)).toEqual([250, 250, 100, 100])
  expect(await store.decide({ ...request, cost: 1 })).toMatchObject({ allowed: false })
})

test('a decision that was charged nothing is settled, also one without any limit', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const free = ask({ cost: 0, limits: everyLimit })
  await store.decide(free)
  expect(await settlements.settle({ subject, id: free.reservation.id, cost: 7 })).toMatchObject({ chargedCost: 0 })
  expect(await used(free)).toEqual([7, 7, 7, 7])
  const unlimited = ask({ cost: 3, limits: [] })
  expect(await store.decide(unlimited)).toMatchObject({ allowed: true, reason: 'ok' })
  const settled = await settlements.settle({ subject, id: unlimited.reservation.id, cost: 9 })
  expect(settled).toMatchObject({ kind: 'settled', chargedCost: 3, limits: [], isRecordPending: true })
})

test('a repeat gets the same answer and changes nothing; another cost is a conflict', async () => {
  const { redis, store, subject, ask, used, settlements, clock } = await open()
  const request = ask({ cost: 40, limits: everyLimit })
  await store.decide(request)
  const { id } = request.reservation
  const first = await settlements.settle({ subject, id, cost: 10 })
  const bytes = await redis.getBuffer(settlementKey({ subject }, id))
  clock.ms += 5_000
  const racing = await Promise.all(Array.from({ length: 8 }, () => settlements.settle({ subject, id, cost: 10 })))
  expect(racing).toEqual(Array(8).fill(first))
  expect(await redis.getBuffer(settlementKey({ subject }, id))).toEqual(bytes)
  expect(await settlements.settle({ subject, id, cost: 11 })).toEqual({ kind: 'conflict', cost: 10 })
  expect(await used(request)).toEqual([10, 10, 10, 10])
})

test('many who settle one decision to different costs at once: one wins, all others are told its cost', async () => {
  const { store, subject, ask, used, processOf } = await open()
  const request = ask({ cost: 50, limits: everyLimit })
  await store.decide(request)
  const { id } = request.reservation
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) => processOf('same').settle({ subject, id, cost: at })),
  )
  const winner = answers.findIndex(({ kind }) => kind === 'settled')
  expect(answers.filter(({ kind }) => kind === 'settled')).toHaveLength(1)
  expect(answers.filter(({ kind }) => kind === 'conflict')).toEqual(Array(11).fill({ kind: 'conflict', cost: winner }))
  expect(await used(request)).toEqual(Array(4).fill(winner))
})

test('only what asked for it, was charged, and is not over can be settled', async () => {
  const { redis, store, subject, ask, settlements } = await open()
  const settle = (id: string, of = subject) => settlements.settle({ subject: of, id, cost: 1 })
  const limits = [limitOf('fixed_window', { size: 10, capacity: 10 })]
  const plain = ask({ limits })
  await store.decide({ ...plain, reservation: undefined })
  expect(await settle(plain.reservation.id)).toEqual({ kind: 'unknown' })
  const refused = ask({ limits, cost: 11 })
  expect(await store.decide(refused)).toMatchObject({ allowed: false })
  expect(await settle(refused.reservation.id)).toEqual({ kind: 'unknown' })
  const peeked = ask({ limits, peek: true })
  await store.decide(peeked)
  expect(await settle(peeked.reservation.id)).toEqual({ kind: 'unknown' })
  const charged = ask({ limits }, { ttlMs: 5_000 })
  await store.decide(charged)
  expect(await settle(charged.reservation.id, 'somebody-else')).toEqual({ kind: 'unknown' })
  const leftMs = await redis.pttl(settlementKey({ subject }, charged.reservation.id))
  expect(leftMs).toBeGreaterThan(3_000)
  expect(leftMs).toBeLessThanOrEqual(5_000)
})

test('a charge that was given back is not settled any more', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const request = ask({ cost: 5, limits: everyLimit })
  const decision = await store.decide(request)
  expect(await store.refund(request, decision)).toBe(true)
  expect(await settlements.settle({ subject, id: request.reservation.id, cost: 90 })).toEqual({ kind: 'unknown' })
  expect(await used(request)).toEqual([0, 0, 0, 0])
})

test('only what its subject asked for is settled by the subject: to what it was charged at most, and on its own limits', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const shared = limitOf('fixed_window', { name: subject, by: [{ kind: 'global' }] })
  const limits = [...everyLimit, shared]
  const [theirs, own] = [ask({ cost: 8, limits }), ask({ cost: 8, limits }, { isOwn: true, settleMax: 100 })]
  for (const request of [theirs, own]) await store.decide(request)
  const settle = ({ reservation }: typeof own, cost: number) =>
    settlements.settle({ subject, id: reservation.id, cost, isOwn: true })
  expect(await settle(theirs, 8)).toEqual({ kind: 'forbidden' })
  expect(await settle(own, 9)).toEqual({ kind: 'too-much', settleMax: 8 })
  expect(await used(own)).toEqual([16, 16, 16, 16, 16])
  expect(await settle(own, 1)).toMatchObject({
    kind: 'settled',
    limits: everyLimit.map(({ name }) => ({ name, used: 9 })),
  })
  expect(await used(own)).toEqual([9, 9, 9, 9, 16])
  expect(await settle(own, 1)).toMatchObject({ kind: 'settled', chargedCost: 8 })
  expect(await settle(theirs, 8)).toEqual({ kind: 'forbidden' })
})

test('a decision is settled to its highest cost at most; one of a version before to the size of its largest limit, and not by its subject', async () => {
  const { store, subject, ask, settlements } = await open()
  const limits = [limitOf('fixed_window'), limitOf('sliding_log', { size: 300, capacity: 300 })]
  const settle = async (request: ReturnType<typeof ask>, cost: number, isOwn = false) => {
    await store.decide(request)
    return await settlements.settle({ subject, id: request.reservation.id, cost, isOwn })
  }
  expect(await settle(ask({ cost: 5, limits }, { settleMax: 7 }), 8)).toEqual({ kind: 'too-much', settleMax: 7 })
  expect(await settle(ask({ cost: 5, limits }, { settleMax: 7 }), 7)).toMatchObject({ kind: 'settled' })
  expect(await settle(ask({ cost: 5, limits }, { settleMax: 3 }), 6)).toEqual({ kind: 'too-much', settleMax: 5 })
  expect(await settle(ask({ cost: 5, limits }), 301)).toEqual({ kind: 'too-much', settleMax: 300 })
  expect(await settle(ask({ cost: 5, limits }), 50)).toMatchObject({ kind: 'settled' })
  expect(await settle(ask({ cost: 5, limits }), 0, true)).toEqual({ kind: 'forbidden' })
  const elsewhere = ask({ cost: 5, limits: [] }, { siblingKeys: ['weir:1:{ip:198.51.100.1}:_settle:x'] })
  expect(await settle(elsewhere, 6)).toEqual({ kind: 'too-much', settleMax: 5 })
})

test('what a version before settled to more than is allowed now is completed by a repeat', async () => {
  const { redis, store, subject, ask, settlements } = await open()
  const request = ask({ cost: 5, limits: everyLimit }, { settleMax: 100 })
  await store.decide(request)
  const settlement = { subject, id: request.reservation.id, cost: 90 }
  const settled = await settlements.settle(settlement)
  const key = settlementKey({ subject }, request.reservation.id)
  const before = await redis.getBuffer(key)
  const text = before?.toString('latin1').replace('"settleMax":100', '"settleMax":10 ') ?? ''
  await redis.set(key, Buffer.from(text, 'latin1'), 'KEEPTTL')
  expect(await settlements.settle(settlement)).toEqual(settled)
  expect(settled).toMatchObject({ kind: 'settled', isRecordPending: true })
})

test('a span that is over is left as it is, and the limits whose counts were corrected are named', async () => {
  const { store, subject, ask, used, settlements, clock } = await open()
  const minute = buildLimit({ name: 'minute', size: 100 })
  const day = buildLimit({ name: 'day', size: 100, span: { kind: 'period', unit: 'day' } })
  const request = ask({ cost: 20, limits: [minute, day] })
  await store.decide(request)
  clock.ms += 2 * minuteMs
  await store.decide({ ...request, cost: 1, reservation: undefined })
  const settled = await settlements.settle({ subject, id: request.reservation.id, cost: 50 })
  expect(settled).toMatchObject({ limits: [{ name: 'day', used: 51 }] })
  expect(await used(request)).toEqual([1, 51])
})

test('under an idempotency key a decision is charged once and settled once, by the id of the first', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const [first, again] = [ask({ cost: 8, limits: everyLimit }), ask({ cost: 8, limits: everyLimit })].map(
    (request) => ({ ...request, idempotency: { key: 'order 1', id: request.reservation.id } }),
  )
  if (first === undefined || again === undefined) throw new Error('two requests were made')
  await store.decide(first)
  expect(await store.decide(again)).toMatchObject({ repeats: first.reservation.id })
  expect(await settlements.settle({ subject, id: again.reservation.id, cost: 1 })).toEqual({ kind: 'unknown' })
  expect(await settlements.settle({ subject, id: first.reservation.id, cost: 1 })).toMatchObject({ chargedCost: 8 })
  expect(await used(first)).toEqual([1, 1, 1, 1])
})

test('a record is pending until it is safe, at the process that settled; another takes it over a minute later, once', async () => {
  const { store, subject, ask, processOf, settlements, clock } = await open()
  const request = ask({ cost: 5, limits: everyLimit })
  await store.decide(request)
  const settlement = { subject, id: request.reservation.id, cost: 2 }
  expect(await settlements.settle(settlement)).toMatchObject({ isRecordPending: true })
  const other = processOf('two')
  clock.ms += 10_000
  expect(await other.settle(settlement)).toEqual({ kind: 'busy', retryAfterMs: 50_000 })
  clock.ms += 50_000
  expect(await other.settle(settlement)).toMatchObject({ kind: 'settled', isRecordPending: true })
  expect(await settlements.settle(settlement)).toEqual({ kind: 'busy', retryAfterMs: 60_000 })
  expect(await other.confirmRecorded(settlement)).toBe(true)
  expect(await settlements.settle(settlement)).toMatchObject({ kind: 'settled', isRecordPending: false })
  expect(await other.settle(settlement)).toMatchObject({ isRecordPending: false, chargedCost: 5 })
})

test('a cost that was right from the start needs no record', async () => {
  const { store, subject, ask, settlements } = await open()
  const request = ask({ cost: 5, limits: everyLimit })
  await store.decide(request)
  const settled = await settlements.settle({ subject, id: request.reservation.id, cost: 5 })
  expect(settled).toMatchObject({ kind: 'settled', isRecordPending: false, limits: [] })
})

test('a marker is kept with the charge whole or not at all, and always expires', async () => {
  const { redis, store, subject, ask } = await open()
  const request = ask({ cost: 2 ** 53 - 1, limits: [limitOf('fixed_window', { size: 2 ** 53 - 1 })] })
  await store.decide(request)
  const key = settlementKey({ subject }, request.reservation.id)
  expect(await redis.pttl(key)).toBeGreaterThan(0)
  await redis.set(`weir:1:{${subject}}:token_bucket`, 'x', 'PX', 60_000)
  const wrong = ask({ limits: [limitOf('token_bucket')] }, { ttlMs: dayMs + 1 })
  await expect(store.decide(wrong)).rejects.toThrow('to be settled')
  expect(await redis.exists(settlementKey({ subject }, wrong.reservation.id))).toBe(0)
})

test('what a Redis has forgotten of the last settlements is done again once it is back, and nothing twice', async () => {
  const { redis, store, subject, ask, used, settlements } = await open()
  const span = { kind: 'period', unit: 'month' } as const
  const tokens = buildLimit({ name: 'tokens', unit: 'tokens', size: 1_000, capacity: 1_000, span })
  const units = (count: number) => new Map([['tokens', count]])
  const held = ask({ limits: [tokens, limitOf('fixed_window')], units: units(400) })
  const { id } = held.reservation
  await store.decide(held)
  const keys = await redis.keys(`weir:1:{${subject}}*`)
  const before = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  await settlements.settle({ subject, id, cost: 3, units: units(120) })
  await settlements.confirmRecorded({ subject, id })
  expect(await used(held)).toEqual([120, 3])
  const marker = async () => `${await redis.getBuffer(settlementKey({ subject }, id)).catch(() => 'away')}`
  const confirmed = await marker()
  for (const _ of [1, 2]) {
    for (const [at, key] of keys.entries()) await redis.restore(key, dayMs, before[at] ?? '', 'REPLACE')
    expect(await used(held)).toEqual([0, 1])
    redis.disconnect(true)
    await until(async () => (await marker()) === confirmed, 10_000)
    expect(await used(held)).toEqual([120, 3])
  }
  redis.disconnect(true)
  await until(async () => (await redis.ping().catch(() => '')) === 'PONG', 10_000)
  expect(await settlements.settle({ subject, id, cost: 3, units: units(120) })).toMatchObject({
    isRecordPending: false,
  })
  expect(await used(held)).toEqual([120, 3])
})

const tokensOf = (unit: 'month' | 'day') =>
  buildLimit({ name: 'tokens', unit: 'tokens', size: 1_000, capacity: 1_000, span: { kind: 'period', unit } })

test('what is renewed is held on, and counted as a marker for longer', async () => {
  const { store, subject, ask, used, clock, redis } = await open()
  const settlements = new RedisSettlements({
    redis,
    owner: 'one',
    now: () => clock.ms,
    answerMs: 20_000,
    markersMax: 4,
  })
  const held = ask({ limits: [tokensOf('month')], units: new Map([['tokens', 400]]) }, { ttlMs: minuteMs })
  const { id } = held.reservation
  await store.decide(held)
  for (const expected of ['renewed', 'renewed', 'renewed', 'too-many']) {
    clock.ms += 50_000
    expect((await settlements.renew({ subject, id })).kind).toBe(expected)
    expect(await used(held)).toEqual([0])
  }
  clock.ms += 9_000
  expect(await settlements.settle({ subject, id, units: new Map([['tokens', 120]]) })).toMatchObject({
    kind: 'settled',
  })
  expect(await used(held)).toEqual([120])
})

test('after an edited anchor the running period keeps what was held, and charges no settlement on top of it', async () => {
  const { store, subject, ask, used, settlements } = await open()
  const limits = [tokensOf('month')]
  const units = (count: number) => new Map([['tokens', count]])
  await store.decide({ ...ask({ limits, units: units(10) }), reservation: undefined } as LimitRequest)
  const held = { ...ask({ limits, units: units(400) }), anchor: 15 }
  await store.decide(held)
  await settlements.settle({ subject, id: held.reservation.id, units: units(100) })
  const { limits: states } = await store.decide({ ...held, units: units(0), peek: true })
  expect(states).toMatchObject([{ used: 10, remaining: 590 }])
  expect(await used(held)).toEqual([10])
})

test('callers that hold for many lengths of time make no count longer than 24 ends', async () => {
  const { redis, store, subject, ask, used, settlements } = await open()
  const checks = Array.from({ length: 60 }, (_, at) =>
    ask({ limits: [tokensOf('month')], units: new Map([['tokens', 10]]) }, { ttlMs: 1_000 * (1 + at * at) }),
  )
  for (const check of checks) await store.decide(check)
  expect(await redis.strlen(`weir:1:{${subject}}:tokens`)).toBeLessThanOrEqual(17 + 24 * 12)
  expect(await used(checks[0] as LimitRequest)).toEqual([0])
  for (const { reservation } of checks)
    await settlements.settle({ subject, id: reservation.id, units: new Map([['tokens', 4]]) })
  expect(await used(checks[0] as LimitRequest)).toEqual([240])
})
