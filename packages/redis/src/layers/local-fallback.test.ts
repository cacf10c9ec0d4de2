import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Charge, LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit as anyLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import { expect, test } from 'vitest'
import { MemoryLimitStore } from '../testing/memory-limit-store.ts'
import { createLocalFallback } from './local-fallback.ts'

const startMs = 1_790_000_040_000

const buildLimit = (overrides: Partial<Limit> = {}) => anyLimit({ onUnavailable: 'local', ...overrides })

const buildRequest = (limits: readonly Limit[], overrides: Partial<LimitRequest> = {}) =>
  buildLimitRequest({ limits, ...overrides })

function open(processes: number, cellsMax?: number) {
  let nowMs = startMs
  let isUp = false
  let count = processes
  const refunded: Charge[] = []
  const clock = { nowMs: () => nowMs }
  const periodBoundaries = createBoundaryCache()
  const memory = new MemoryLimitStore({ clock, periodBoundaries })
  const flapping: LimitStore = {
    decide: async (request) => (isUp ? memory.decide(request) : unavailableDecision(request, 'unknown')),
    refund: async (request, charge) => {
      refunded.push(charge)
      return isUp && memory.refund(request, charge)
    },
  }
  const store = createLocalFallback(flapping, {
    clock,
    periodBoundaries,
    processes: () => count,
    ...(cellsMax === undefined ? {} : { cellsMax }),
  })
  return {
    store,
    refunded,
    admitted: async (request: LimitRequest, times: number) => {
      let allowed = 0
      for (let left = times; left > 0; left -= 1) allowed += (await store.decide(request)).allowed ? 1 : 0
      return allowed
    },
    pass: (ms: number) => {
      nowMs += ms
    },
    setUp: (up: boolean) => {
      isUp = up
    },
    setProcesses: (next: number) => {
      count = next
    },
  }
}

test.each([
  [10, 1, 10],
  [10, 3, 3],
  [10, 10, 1],
  [10, 11, 1],
  [10, 0, 10],
])('of a size of %d one of %d processes admits %d', async (size, processes, share) => {
  const { admitted } = open(processes)
  expect(await admitted(buildRequest([buildLimit({ size })]), 20)).toBe(share)
})

test.each<[Limit['algorithm'], number]>([
  ['fixed_window', 5],
  ['sliding_window', 5],
  ['sliding_log', 5],
  ['token_bucket', 2],
])('%s is held to its share of size and capacity', async (algorithm, share) => {
  const { admitted } = open(2)
  const capacity = algorithm === 'token_bucket' ? 4 : 10
  expect(await admitted(buildRequest([buildLimit({ algorithm, capacity })]), 20)).toBe(share)
})

test('the fallback counts what it admitted, and its denials say a true time to wait', async () => {
  const { store, pass } = open(5)
  const request = buildRequest([buildLimit({ name: 'free', onUnavailable: 'allow' }), buildLimit()])
  expect(await store.decide(request)).toMatchObject({
    allowed: true,
    reason: 'unavailable',
    charged: 'unknown',
    deniedBy: '',
    atUs: 0,
    exceededMask: 0,
    limits: [{ name: 'minute', size: 2, used: 1, remaining: 1, resetMs: 60_000 }],
  })
  await store.decide(request)
  pass(1_000)
  expect(await store.decide(request)).toMatchObject({
    allowed: false,
    reason: 'limit',
    deniedBy: 'minute',
    exceededMask: 2,
    retryAfterMs: 59_000,
    source: 'local',
  })
  pass(58_999)
  expect(await store.decide(request)).toMatchObject({ allowed: false, retryAfterMs: 1 })
  pass(1)
  expect(await store.decide(request)).toMatchObject({ allowed: true, source: 'local' })
})

test('a Redis that comes and goes admits one share in a window, not one each time', async () => {
  const { admitted, setUp } = open(2)
  const request = buildRequest([buildLimit()])
  let local = 0
  for (let outage = 0; outage < 5; outage += 1) {
    setUp(false)
    local += await admitted(request, 3)
    setUp(true)
    await admitted(request, 1)
  }
  expect(local).toBe(5)
})

test('a process that comes or goes changes the share of a running window', async () => {
  const { admitted, setProcesses } = open(2)
  const request = buildRequest([buildLimit()])
  expect(await admitted(request, 20)).toBe(5)
  setProcesses(1)
  expect(await admitted(request, 20)).toBe(5)
})

test('a limit with onUnavailable: deny denies whatever the shares have left, and takes nothing of them', async () => {
  const { store, admitted } = open(1)
  const strict = buildLimit({ name: 'strict', onUnavailable: 'deny' })
  expect(await store.decide(buildRequest([buildLimit(), strict]))).toMatchObject({
    allowed: false,
    reason: 'unavailable',
    deniedBy: 'strict',
    retryAfterMs: 1_000,
  })
  expect(await admitted(buildRequest([buildLimit()]), 20)).toBe(10)
})

test('a limit in shadow denies nothing in the fallback either, and names what it would have denied', async () => {
  const { store, admitted } = open(10)
  const shadow = buildLimit({ name: 'watched', mode: 'shadow' })
  const request = buildRequest([shadow, buildLimit({ size: 90 })])
  await admitted(request, 1)
  expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'unavailable', shadowedBy: 'watched' })
})

test('a cost above the share waits for Redis; one above the size is refused for good', async () => {
  const { store } = open(5)
  const request = buildRequest([buildLimit()], { cost: 3 })
  expect(await store.decide(request)).toMatchObject({ allowed: false, reason: 'unavailable', retryAfterMs: 1_000 })
  expect(await store.decide({ ...request, cost: 11 })).toMatchObject({ reason: 'cost_exceeds_limit', retryAfterMs: 0 })
})

test('a peek takes nothing of the share', async () => {
  const { store, admitted } = open(5)
  const request = buildRequest([buildLimit()])
  expect(await store.decide({ ...request, peek: true })).toMatchObject({ allowed: true, charged: 'no' })
  expect(await admitted(request, 20)).toBe(2)
})

test('a local decision is not refunded, and no refund of it reaches Redis', async () => {
  const { store, refunded, setUp } = open(1)
  const request = buildRequest([buildLimit()])
  const here = await store.decide(request)
  setUp(true)
  const there = await store.decide(request)
  expect(await store.refund(request, here)).toBe(false)
  expect(await store.refund(request, there)).toBe(true)
  expect(refunded).toEqual([there])
})

test('the fallback keeps no more counts than its bound, a log counting for its stamps', async () => {
  const { admitted } = open(1, 4)
  const by = (subject: string, limit: Limit) => buildRequest([limit], { scope: { ...buildRequest([]).scope, subject } })
  const small = buildLimit({ size: 1 })
  for (const subject of ['a', 'b', 'c', 'd', 'e']) await admitted(by(subject, small), 1)
  expect(await admitted(by('b', small), 1)).toBe(0)
  expect(await admitted(by('a', small), 1)).toBe(1)
  const log = by('f', buildLimit({ algorithm: 'sliding_log', size: 90 }))
  await admitted(log, 1)
  expect(await admitted(by('a', small), 1)).toBe(0)
  await admitted(log, 89)
  expect(await admitted(by('a', small), 1)).toBe(1)
})

test('a limit that degrades admits requests above its share, and is named', async () => {
  const { store } = open(2)
  const request = buildRequest([buildLimit({ size: 2, onExceed: { kind: 'degrade' } })])
  expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'unavailable', deniedBy: '' })
  expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'unavailable', deniedBy: 'minute' })
})

test('an idempotency key is its subject’s own, with colons in both', async () => {
  const { store } = open(1)
  const limits = [buildLimit({ by: [{ kind: 'global' }] })]
  const ask = (subject: string, key: string) =>
    store.decide(buildRequest(limits, { scope: buildScope({ subject }), idempotency: { key, id: subject } }))
  expect(await ask('org', 'team:1')).toMatchObject({ repeats: '', limits: [{ used: 1 }] })
  expect(await ask('org:team', '1')).toMatchObject({ repeats: '', limits: [{ used: 2 }] })
  expect(await ask('org:team', '1')).toMatchObject({ repeats: 'org:team' })
})

test('what Redis may hold of a request that the fallback denies is given back', async () => {
  let given = 0
  const giveBack = async () => {
    given += 1
  }
  const store = createLocalFallback(
    {
      decide: async (request) => ({ ...unavailableDecision(request, 'unknown'), giveBack }),
      refund: async () => false,
    },
    { clock: { nowMs: () => startMs }, periodBoundaries: createBoundaryCache(), processes: () => 10 },
  )
  const request = buildRequest([buildLimit({ size: 10 })])
  expect((await store.decide(request)).allowed).toBe(true)
  expect(given).toBe(0)
  const denied = await store.decide(request)
  await denied.lateRefund
  expect([denied.allowed, given]).toEqual([false, 1])
})
