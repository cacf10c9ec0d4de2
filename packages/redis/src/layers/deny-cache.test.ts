import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit as anyLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test } from 'vitest'
import { MemoryLimitStore } from '../testing/memory-limit-store.ts'
import { createDenyCache } from './deny-cache.ts'

const startMs = 1_790_000_040_000

const buildLimit = (overrides: Partial<Limit> = {}) => anyLimit({ size: 2, ...overrides })

const buildRequest = (limits: readonly Limit[], overrides: Partial<LimitRequest> = {}) =>
  buildLimitRequest({ limits, ...overrides })

function open(denialsMax?: number) {
  let nowMs = startMs
  const memory = new MemoryLimitStore({ clock: { nowMs: () => nowMs }, periodBoundaries: createBoundaryCache() })
  let asked = 0
  const counting: LimitStore = {
    decide(request) {
      asked += 1
      return memory.decide(request)
    },
    refund: (request, charge) => memory.refund(request, charge),
  }
  const store = createDenyCache(counting, {
    monotonicMs: () => nowMs - startMs,
    ...(denialsMax === undefined ? {} : { denialsMax }),
  })
  return {
    store,
    asked: () => asked,
    pass: (ms: number) => {
      nowMs += ms
    },
    use: async (request: LimitRequest, times: number) => {
      for (let left = times; left > 0; left -= 1) await store.decide(request)
    },
  }
}

test('a denial is repeated from memory for a second, with the times that are left; then Redis decides again', async () => {
  const { store, asked, pass, use } = open()
  const request = buildRequest([buildLimit()])
  await use(request, 2)
  const refused = await store.decide(request)
  expect(refused).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
  expect(refused.isCached).toBeUndefined()
  pass(999)
  expect(await store.decide(request)).toEqual({
    ...refused,
    source: 'deny_cache',
    isCached: true,
    atUs: 0,
    retryAfterMs: 59_001,
    limits: [{ name: 'minute', size: 2, used: 2, remaining: 0, resetMs: 59_001 }],
  })
  expect(asked()).toBe(3)
  pass(1)
  await store.decide(request)
  expect(asked()).toBe(4)
})

test('a cached denial never outlasts its own time to wait', async () => {
  const { store, pass, use } = open()
  const request = buildRequest([buildLimit()])
  pass(59_400)
  await use(request, 3)
  pass(599)
  expect(await store.decide(request)).toMatchObject({ allowed: false, retryAfterMs: 1 })
  pass(1)
  expect(await store.decide(request)).toMatchObject({ allowed: true })
})

test('a smaller cost goes to Redis, as it may fit; a larger one is denied from memory where the wait is the same', async () => {
  const { store, asked, use } = open()
  const window = [buildLimit({ size: 10 })]
  await use(buildRequest(window), 8)
  await store.decide(buildRequest(window, { cost: 3 }))
  const cached = { allowed: false, source: 'deny_cache' }
  expect(await store.decide(buildRequest(window, { cost: 4 }))).toMatchObject(cached)
  expect(asked()).toBe(9)
  expect(await store.decide(buildRequest(window, { cost: 2 }))).toMatchObject({ allowed: true })
  expect(await store.decide(buildRequest(window, { cost: 11 }))).toMatchObject({ reason: 'cost_exceeds_limit' })

  const bucket = [buildLimit({ name: 'bucket', algorithm: 'token_bucket', size: 60, capacity: 10 })]
  await store.decide(buildRequest(bucket, { cost: 10 }))
  expect(await store.decide(buildRequest(bucket, { cost: 1 }))).toMatchObject({ retryAfterMs: 1_000 })
  expect(await store.decide(buildRequest(bucket, { cost: 5 }))).toMatchObject({ retryAfterMs: 5_000 })
  expect(await store.decide(buildRequest(bucket, { cost: 1 }))).toMatchObject({ ...cached, retryAfterMs: 1_000 })
})

test('a denial by a shared limit serves every caller that has no other limit; the others go to Redis', async () => {
  const { store, asked, use } = open()
  const shared = buildLimit({ name: 'shared', by: [{ kind: 'ip' }] })
  const own = buildLimit({ name: 'own', size: 9 })
  const from = (subject: string, limits: readonly Limit[], ip = '192.0.2.1') =>
    buildRequest(limits, { scope: { ...buildRequest([]).scope, subject, ip } })
  await use(from('a', [shared]), 3)
  expect(await store.decide(from('b', [shared]))).toMatchObject({
    allowed: false,
    deniedBy: 'shared',
    exceededMask: 1,
    limits: [{ name: 'shared', remaining: 0 }],
  })
  expect(asked()).toBe(3)
  expect(await store.decide(from('b', [own, shared]))).toMatchObject({ allowed: false, exceededMask: 2 })
  expect(asked()).toBe(4)
  expect(await store.decide(from('b', [own, shared]))).toMatchObject({ allowed: false, exceededMask: 2 })
  expect(asked()).toBe(4)
  expect(await store.decide(from('a', [shared], '192.0.2.2'))).toMatchObject({ allowed: true })
  expect(asked()).toBe(5)
})

test('a block is cached like a denial', async () => {
  const { store, asked, use } = open()
  const request = buildRequest([buildLimit({ blockMs: 5_000 })])
  await use(request, 3)
  expect(await store.decide(request)).toMatchObject({ allowed: false, retryAfterMs: expect.any(Number) })
  expect(asked()).toBe(3)
})

test.each<[string, (limit: Limit) => LimitRequest]>([
  ['looking', (limit) => buildRequest([limit], { peek: true })],
  ['an idempotency key', (limit) => buildRequest([limit], { idempotency: { key: 'k', id: 'i' } })],
  ['a limit that was edited', (limit) => buildRequest([{ ...limit }])],
])('%s is never answered from memory', async (_, ask) => {
  const { asked, use } = open()
  const limit = buildLimit()
  await use(buildRequest([limit]), 3)
  await use(ask(limit), 1)
  expect(asked()).toBe(4)
})

test('a denial by two limits, or of a cost that never fits, is not cached', async () => {
  const { asked, use } = open()
  await use(buildRequest([buildLimit(), buildLimit({ name: 'other' })]), 5)
  expect(asked()).toBe(5)
  await use(buildRequest([buildLimit({ name: 'third' })], { cost: 3 }), 2)
  expect(asked()).toBe(7)
})

test('after a reset or a change of policy every request goes to Redis, and answers in flight are not cached', async () => {
  const { store, asked, use } = open()
  const request = buildRequest([buildLimit()])
  await use(request, 3)
  store.invalidate()
  const underWay = store.decide(request)
  store.invalidate()
  await underWay
  await store.decide(request)
  expect(asked()).toBe(5)
})

test('no more denials are cached than the bound says', async () => {
  const { asked, use } = open(1)
  const [one, other] = ['one', 'other'].map((name) => buildRequest([buildLimit({ name })]))
  if (one === undefined || other === undefined) throw new Error('two requests')
  await use(one, 3)
  await use(other, 3)
  await use(other, 1)
  expect(asked()).toBe(6)
  await use(one, 1)
  expect(asked()).toBe(7)
})

test('a limit of size 0 denies every cost above 0 without Redis', async () => {
  const { store, asked } = open()
  const shut = buildLimit({ name: 'shut', size: 0 })
  const refused = await store.decide(buildRequest([buildLimit(), shut]))
  const expected = { allowed: false, reason: 'cost_exceeds_limit', deniedBy: 'shut', exceededMask: 2, isCached: true }
  expect([refused, asked()]).toMatchObject([expected, 0])
  const others = [
    buildRequest([shut], { cost: 0 }),
    buildRequest([{ ...shut, mode: 'shadow' }]),
    buildRequest([{ ...shut, onExceed: { kind: 'degrade' } }]),
    buildRequest([shut], { idempotency: { key: 'k', id: 'i' } }),
  ]
  for (const request of others) await store.decide(request)
  expect(asked()).toBe(4)
})

test('a limit that degrades causes no cached denial, and does not change the wait of one by another limit', async () => {
  const { store, asked, use } = open()
  const soft = buildLimit({ name: 'soft', size: 1, onExceed: { kind: 'degrade' } })
  await use(buildRequest([soft]), 3)
  expect(asked()).toBe(3)
  const hard = buildLimit({ name: 'hard', size: 1 })
  await use(buildRequest([hard]), 2)
  const before = asked()
  const again = await store.decide(buildRequest([hard, soft]))
  expect([again.allowed, again.deniedBy, asked() - before]).toEqual([false, 'hard', 0])
})
