import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit as anyLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemoryLimitStore } from '../testing/memory-limit-store.ts'
import { Leasing, type LeasingOptions } from './lease.ts'

const minuteMs = 60_000
const startMs = 1_790_000_040_000

const buildLimit = (overrides: Partial<Limit> = {}) => anyLimit({ name: 'leased', size: 100, lease: 10, ...overrides })

const buildRequest = (limits: readonly Limit[], overrides: Partial<LimitRequest> = {}) =>
  buildLimitRequest({ limits, ...overrides })

/** Processes of their own around one store, which can be taken away. */
function open(processes = 1, options: LeasingOptions = {}) {
  let nowMs = startMs
  let isUp = true
  const asked: LimitRequest[] = []
  const memory = new MemoryLimitStore({ clock: { nowMs: () => nowMs }, periodBoundaries: createBoundaryCache() })
  const inner: LimitStore = {
    decide: async (request) => {
      asked.push(request)
      return isUp ? memory.decide(request) : unavailableDecision(request, 'no')
    },
    refund: async (request, charge) => memory.refund(request, charge),
  }
  const stores = Array.from(
    { length: processes },
    () => new Leasing(inner, { monotonicMs: () => nowMs - startMs, ...options }),
  )
  const [store] = stores
  if (store === undefined) throw new Error('at least one process')
  return {
    store,
    stores,
    memory,
    asked,
    pass: (ms: number) => {
      nowMs += ms
    },
    setUp: (up: boolean) => {
      isUp = up
    },
    admitted: async (request: LimitRequest, times: number, by: LimitStore = store) => {
      let allowed = 0
      for (let left = times; left > 0; left -= 1) allowed += (await by.decide(request)).allowed ? 1 : 0
      return allowed
    },
  }
}

describe('a limit with a lease', () => {
  test('asks once for that many units, and decides from memory until they are spent', async () => {
    const { store, asked, admitted } = open()
    const request = buildRequest([buildLimit()])
    expect(await admitted(request, 10)).toBe(10)
    expect(asked.map(({ cost }) => cost)).toEqual([10])
    expect(await store.decide(request)).toMatchObject({ allowed: true, source: 'lease' })
    expect(asked.map(({ cost }) => cost)).toEqual([10, 10])
    expect(store.counters).toEqual({ calls: 2, granted: 20 })
  })

  test('of a subject above is not leased: each level below would hold units of one count', async () => {
    const { asked, admitted } = open()
    const above = [{ id: 'team', timeZone: 'UTC', anchor: 1 }]
    const request = buildRequest([buildLimit({ level: 1 })], { scope: buildScope({ above }) })
    expect(await admitted(request, 3)).toBe(3)
    expect(asked.map(({ cost }) => cost)).toEqual([1, 1, 1])
  })

  test('says what is left here and was left in Redis; what others took counts as used', async () => {
    const { store, stores, pass } = open(2)
    const request = buildRequest([buildLimit()])
    await stores[1]?.decide(request)
    pass(1_000)
    expect(await store.decide(request)).toEqual({
      allowed: true,
      reason: 'ok',
      deniedBy: '',
      exceededMask: 0,
      shadowedBy: '',
      charged: 'yes',
      retryAfterMs: 0,
      atUs: 0,
      repeats: '',
      source: 'lease',
      limits: [{ name: 'leased', size: 100, used: 11, remaining: 89, resetMs: 59_000 }],
    })
    pass(500)
    expect(await store.decide(request)).toMatchObject({ limits: [{ used: 12, remaining: 88, resetMs: 58_500 }] })
  })

  test('is admitted exactly to its size, the last units in smaller pieces, and then refused by Redis in full words', async () => {
    const { store, admitted } = open()
    const request = buildRequest([buildLimit({ size: 25 }), buildLimit({ name: 'free', size: 99, lease: 0 })])
    expect(await admitted(request, 40)).toBe(25)
    expect(await store.decide(request)).toMatchObject({
      reason: 'limit',
      deniedBy: 'leased',
      exceededMask: 1,
      retryAfterMs: minuteMs,
      charged: 'no',
      limits: [
        { name: 'leased', used: 25, remaining: 0 },
        { name: 'free', used: 25 },
      ],
    })
  })

  test('once exhausted is asked plainly, one call a request, and tried again after a second', async () => {
    const { asked, admitted, pass } = open()
    const request = buildRequest([buildLimit({ size: 10 })])
    await admitted(request, 11)
    asked.splice(0)
    await admitted(request, 5)
    expect(asked.map(({ cost }) => cost)).toEqual([1, 1, 1, 1, 1])
    pass(1_000)
    await admitted(request, 1)
    expect(asked.map(({ cost }) => cost).slice(5)).toEqual([10, 1])
  })

  test('concurrent requests share one call, and what they want beyond a lease comes with the next', async () => {
    const { store, asked } = open()
    const request = buildRequest([buildLimit({ size: 1_000 })])
    const decisions = await Promise.all(Array.from({ length: 200 }, () => store.decide(request)))
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
    expect(asked.map(({ cost }) => cost)).toEqual([10, 190])
  })

  test('never uses a unit after its window, and asks plainly where a lease would be lost', async () => {
    const { asked, admitted, pass } = open()
    const request = buildRequest([buildLimit()])
    pass(minuteMs - 120)
    await admitted(request, 5)
    pass(70) // 50 ms before the end
    await admitted(request, 1)
    await admitted(request, 1)
    expect(asked.map(({ cost }) => cost)).toEqual([10, 10, 1, 1])
    pass(50)
    await admitted(request, 1)
    expect(asked.map(({ cost }) => cost).slice(4)).toEqual([10])
  })

  test('other limits of the request are asked alone, and a refusal by them puts the units back', async () => {
    const { store, asked, admitted } = open()
    const limits = [buildLimit({ name: 'narrow', size: 3, lease: 0 }), buildLimit()]
    expect(await admitted(buildRequest(limits), 6)).toBe(3)
    expect(asked.slice(1).map((request) => request.limits.map(({ name }) => name))).toEqual(Array(6).fill(['narrow']))
    expect(await store.decide(buildRequest(limits))).toMatchObject({
      reason: 'limit',
      deniedBy: 'narrow',
      exceededMask: 1,
      limits: [
        { name: 'narrow', used: 3 },
        { name: 'leased', used: 3, remaining: 97 },
      ],
    })
    expect(await admitted(buildRequest(limits.slice(1)), 7)).toBe(7)
    expect(store.counters.granted).toBe(10)
  })

  test('bits and states stand in the request’s order, wherever the leased limit stands', async () => {
    const { store } = open()
    const shadow = buildLimit({ name: 'shadow', size: 1, lease: 0, mode: 'shadow' })
    const request = buildRequest([buildLimit(), shadow])
    await store.decide(request)
    const decision = await store.decide(request)
    expect(decision).toMatchObject({ allowed: true, shadowedBy: 'shadow', exceededMask: 2, charged: 'yes' })
    expect(decision.limits.map(({ name }) => name)).toEqual(['leased', 'shadow'])
    expect(decision.atUs).toBeGreaterThan(0)
  })

  test('one of two leases refused puts the other’s units back', async () => {
    const { store, admitted } = open()
    const limits = [buildLimit({ name: 'wide' }), buildLimit({ name: 'narrow', size: 2 })]
    expect(await admitted(buildRequest(limits), 5)).toBe(2)
    expect(await admitted(buildRequest(limits.slice(0, 1)), 8)).toBe(8)
    expect(store.counters.granted).toBe(12)
  })

  test('goes on from memory while Redis is away; then the limit’s own onUnavailable decides', async () => {
    const { store, admitted, setUp } = open()
    const request = buildRequest([buildLimit({ onUnavailable: 'deny' })])
    await store.decide(request)
    setUp(false)
    expect(await admitted(request, 9)).toBe(9)
    expect(await store.decide(request)).toMatchObject({ allowed: false, reason: 'unavailable', deniedBy: 'leased' })
    setUp(true)
    expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'ok' })
  })

  test('a refund puts back what was taken, once, and only into its own window', async () => {
    const { store, asked, admitted, pass } = open()
    const [one, other] = [buildRequest([buildLimit()]), buildRequest([buildLimit()])]
    const limits = one.limits
    const again = () => ({ ...other, limits })
    const request = again()
    const decision = await store.decide(request)
    expect(await store.refund(request, decision)).toBe(true)
    expect(await store.refund(request, decision)).toBe(false)
    expect(await admitted(again(), 10)).toBe(10)
    expect(asked.length).toBe(1)
    const late = again()
    const charged = await store.decide(late)
    pass(minuteMs)
    await store.decide(again())
    expect(await store.refund(late, charged)).toBe(false)
  })

  test('a refund gives the other limits of the request back in Redis', async () => {
    const { store, memory } = open()
    const plain = buildLimit({ name: 'plain', lease: 0 })
    const request = buildRequest([buildLimit(), plain])
    expect(await store.refund(request, await store.decide(request))).toBe(true)
    const look = await memory.decide(buildRequest([plain], { peek: true }))
    expect(look).toMatchObject({ limits: [{ used: 0 }] })
  })

  test('looking takes neither units nor a lease', async () => {
    const { store, asked } = open()
    const limits = [buildLimit()]
    const look = () => store.decide(buildRequest(limits, { peek: true }))
    expect(await look()).toMatchObject({ allowed: true, charged: 'no', limits: [{ used: 0 }] })
    await store.decide(buildRequest(limits))
    expect(await look()).toMatchObject({ allowed: true, charged: 'no', limits: [{ used: 1, remaining: 99 }] })
    expect(asked.map(({ cost, peek }) => [cost, peek])).toEqual([
      [1, true],
      [10, false],
    ])
  })

  test('a cost above the size is refused for good, and takes no lease', async () => {
    const { store, asked } = open()
    const request = buildRequest([buildLimit()], { cost: 101 })
    expect(await store.decide(request)).toMatchObject({ reason: 'cost_exceeds_limit', deniedBy: 'leased' })
    expect(asked.map(({ cost }) => cost)).toEqual([101])
  })

  test('keeps no more leases than the bound', async () => {
    const { admitted, asked } = open(1, { leasesMax: 1 })
    const limits = [buildLimit()]
    const of = (subject: string) => buildRequest(limits, { scope: { ...buildRequest([]).scope, subject } })
    await admitted(of('a'), 2)
    await admitted(of('b'), 2)
    await admitted(of('a'), 1)
    expect(asked.length).toBe(3)
  })
})

test.each<[string, Partial<Limit>, Partial<LimitRequest>]>([
  ['without a lease', { lease: 0 }, {}],
  ['in shadow', { mode: 'shadow' }, {}],
  ['with a block', { blockMs: 1_000 }, {}],
  ['of another algorithm', { algorithm: 'token_bucket' }, {}],
  ['under an idempotency key', {}, { idempotency: { key: 'k', id: 'i' } }],
])('a limit %s is put to Redis as it is', async (_, limit, overrides) => {
  const { store, asked } = open()
  const request = buildRequest([buildLimit(limit)], overrides)
  await store.decide(request)
  expect(asked).toEqual([request])
})

test('an invalid request is rejected although it could be decided from memory', async () => {
  const { store } = open()
  await expect(store.decide(buildRequest([buildLimit()], { cost: -1 }))).rejects.toThrow(RangeError)
})

/** A network between processes and Redis: what is sent is decided, and answered, when a step says so, or times out. */
function openSlowNetwork(processes: number, deadlineMs: number) {
  let nowMs = startMs
  const redis = new MemoryLimitStore({ clock: { nowMs: () => nowMs }, periodBoundaries: createBoundaryCache() })
  interface Call {
    readonly request: LimitRequest
    readonly sentMs: number
    readonly resolve: (decision: Decision) => void
    decided: Promise<Decision> | undefined
  }
  const calls: Call[] = []
  const inner: LimitStore = {
    decide: (request) =>
      new Promise((resolve) => {
        calls.push({ request, sentMs: nowMs, resolve, decided: undefined })
      }),
    refund: (request, charge) => redis.refund(request, charge),
  }
  const answer = async (call: Call) => {
    calls.splice(calls.indexOf(call), 1)
    call.decided ??= redis.decide(call.request)
    call.resolve(await call.decided)
  }
  return {
    stores: Array.from(
      { length: processes },
      () => new Leasing(inner, { monotonicMs: () => nowMs - startMs, deadlineMs }),
    ),
    nowMs: () => nowMs,
    /** Redis decides one call; its answer is on the way. */
    arrive(at: number) {
      const call = calls[at % Math.max(1, calls.length)]
      if (call !== undefined) call.decided ??= redis.decide(call.request)
    },
    async answer(at: number) {
      const call = calls[at % Math.max(1, calls.length)]
      if (call !== undefined) await answer(call)
    },
    async answerAll() {
      for (let call = calls[0]; call !== undefined; call = calls[0]) await answer(call)
    },
    pass(ms: number) {
      nowMs += ms
      for (const call of calls.filter(({ sentMs }) => sentMs + deadlineMs <= nowMs)) {
        calls.splice(calls.indexOf(call), 1)
        call.resolve(unavailableDecision(call.request, 'unknown'))
      }
    },
  }
}

const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary })
const kind = <const K extends string>(name: K) => ({ kind: fc.constant(name) })

/** Most steps ask and answer, so that windows fill up; few enough pass that several do. */
const steps = fc.array(
  fc.oneof(
    weighted(8, fc.record({ ...kind('ask'), process: fc.nat(3), cost: fc.nat(3), mixed: fc.boolean() })),
    weighted(8, fc.record({ ...kind('answer'), at: fc.nat(3) })),
    weighted(3, fc.record({ ...kind('arrive'), at: fc.nat(3) })),
    weighted(1, fc.record({ ...kind('refund'), at: fc.nat(20) })),
    weighted(2, fc.record({ ...kind('pass'), ms: fc.oneof(fc.nat(30), fc.nat(200)) })),
  ),
  { minLength: 100, maxLength: 250, size: 'max' },
)

/** Everything that is resolved by now has gone all its way. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

test('whatever the interleaving, delays and lost answers, no window admits more than the size over four processes', async () => {
  const windowMs = 400
  const property = fc.asyncProperty(
    steps,
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 8 }),
    async (all, size, lease) => {
      const network = openSlowNetwork(4, 25)
      const leased = buildLimit({ size, lease, span: { kind: 'window', ms: windowMs }, onUnavailable: 'deny' })
      const wide = buildLimit({ name: 'wide', size: 20, lease: 0, onUnavailable: 'deny', span: leased.span })
      const used = new Map<number, number>()
      const admitted: { store: LimitStore; request: LimitRequest; decision: Decision; window: number }[] = []
      const asking: Promise<void>[] = []
      const ask = (process: number, cost: number, mixed: boolean) => {
        const store = network.stores[process]
        if (store === undefined) throw new Error(`no process ${process}`)
        const request = buildRequest(mixed ? [wide, leased] : [leased], { cost })
        const note = (decision: Decision) => {
          if (!decision.allowed) return
          const window = Math.floor((decision.atUs > 0 ? decision.atUs / 1_000 : network.nowMs()) / windowMs)
          used.set(window, (used.get(window) ?? 0) + cost)
          expect(used.get(window)).toBeLessThanOrEqual(size)
          if (!mixed) admitted.push({ store, request, decision, window })
        }
        asking.push(store.decide(request).then(note))
      }
      for (const step of all) {
        if (step.kind === 'ask') ask(step.process, step.cost, step.mixed)
        else if (step.kind === 'arrive') network.arrive(step.at)
        else if (step.kind === 'answer') await network.answer(step.at)
        else if (step.kind === 'pass') network.pass(step.ms)
        else {
          const [one] = admitted.splice(step.at % Math.max(1, admitted.length), 1)
          const back = one !== undefined && (await one.store.refund(one.request, one.decision))
          if (one !== undefined && back) used.set(one.window, (used.get(one.window) ?? 0) - one.request.cost)
        }
        await settle()
      }
      for (let round = 0; round < 20; round += 1) {
        await network.answerAll()
        await settle()
      }
      await Promise.all(asking)
    },
  )
  await fc.assert(property, { numRuns: 100 })
}, 30_000)
