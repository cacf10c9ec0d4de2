import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelArguments, Plan } from './plan.ts'
import { type SlidingWindowState, slidingWindow } from './sliding-window.ts'

const dayMs = 86_400_000
const startMs = 20_000 * dayMs

const limitOf = (size: number, ms: number): ModelArguments => ({
  size,
  capacity: size,
  span: { kind: 'window', ms },
  boundaries: undefined,
})

/** One limit over time, as the script keeps it. */
function openLimit(limit: ModelArguments) {
  let state: SlidingWindowState | undefined
  return {
    state: () => state,
    decide(cost: number, nowUs: number): Plan<SlidingWindowState> {
      const plan = slidingWindow.plan(state, limit, cost, nowUs)
      state = plan.next ?? state
      return plan
    },
    refund(cost: number, atUs: number, nowUs: number) {
      state = slidingWindow.refund(state, limit, { cost, atUs }, nowUs) ?? state
    },
  }
}

interface Charge {
  readonly cost: number
  readonly atUs: number
}

const usToMs = (us: number) => Math.floor(us / 1_000)

/** What the definition counts, from all charges that were not refunded. */
function usedByDefinition(charges: readonly Charge[], windowMs: number, nowUs: number): bigint {
  const cell = Math.floor(usToMs(nowUs) / windowMs)
  const unitsIn = (at: number) =>
    charges.reduce(
      (sum, charge) => (Math.floor(usToMs(charge.atUs) / windowMs) === at ? sum + BigInt(charge.cost) : sum),
      0n,
    )
  const left = BigInt((cell + 1) * windowMs - usToMs(nowUs))
  const weighted = unitsIn(cell - 1) * left
  return unitsIn(cell) + (weighted + BigInt(windowMs) - 1n) / BigInt(windowMs)
}

const windowsMs = fc.constantFrom(100, 1_000, 7_777, 60_000, 3_600_000, dayMs - 1, dayMs)
const sizes = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: Number.MAX_SAFE_INTEGER - 9, max: Number.MAX_SAFE_INTEGER }),
)
/** A share of the size and of the window, so that costs and steps mean the same for every limit. */
const steps = fc.array(
  fc.record({
    share: fc.constantFrom(0, 0.001, 0.1, 0.2, 0.5, 0.999, 1),
    more: fc.integer({ min: 0, max: 1 }),
    afterShare: fc.constantFrom(0, 0, 0.001, 0.05, 0.2, 0.4, 0.9, 1, 1.7),
    afterUs: fc.integer({ min: 0, max: 2_000 }),
    refund: fc.integer({ min: 0, max: 12 }),
  }),
  { minLength: 5, maxLength: 60 },
)

const runs = { numRuns: 200 }

describe('over any run of requests and refunds, at any size and window', () => {
  test('the count is what the definition counts without the refunded requests, to the unit', () => {
    fc.assert(
      fc.property(sizes, windowsMs, steps, (size, windowMs, drawn) => {
        const limit = openLimit(limitOf(size, windowMs))
        const charges: Charge[] = []
        let nowUs = startMs * 1_000
        for (const { share, more, afterShare, afterUs, refund } of drawn) {
          nowUs += Math.floor(windowMs * afterShare) * 1_000 + afterUs
          const cost = Math.min(size, Math.floor(size * share) + more)
          const { waitMs, used } = limit.decide(cost, nowUs)
          const before = usedByDefinition(charges, windowMs, nowUs)
          expect(waitMs === 0).toBe(cost === 0 || before + BigInt(cost) <= BigInt(size))
          if (waitMs === 0) charges.push({ cost, atUs: nowUs })
          expect(BigInt(used)).toBe(usedByDefinition(charges, windowMs, nowUs))
          const [refunded] = charges.splice(refund, 1)
          if (refunded !== undefined) limit.refund(refunded.cost, refunded.atUs, nowUs)
          expect(BigInt(limit.decide(0, nowUs).used)).toBe(usedByDefinition(charges, windowMs, nowUs))
        }
      }),
      runs,
    )
  })

  test('waiting exactly as long as told admits and a millisecond less does not; all is free when told, not before', () => {
    fc.assert(
      fc.property(sizes, windowsMs, steps, (size, windowMs, drawn) => {
        const limit = openLimit(limitOf(size, windowMs))
        let nowUs = startMs * 1_000
        const at = (cost: number, atUs: number) =>
          slidingWindow.plan(limit.state(), limitOf(size, windowMs), cost, atUs)
        for (const { share, more, afterShare, afterUs } of drawn) {
          nowUs += Math.floor(windowMs * afterShare) * 1_000 + afterUs
          const cost = Math.min(size, Math.floor(size * share) + more)
          const { waitMs } = limit.decide(cost, nowUs)
          if (waitMs > 0) {
            expect(at(cost, nowUs + waitMs * 1_000).waitMs).toBe(0)
            expect(at(cost, nowUs + waitMs * 1_000 - 1_000).waitMs).toBe(1)
          }
          const { resetMs } = at(0, nowUs)
          expect(at(0, nowUs + resetMs * 1_000).used).toBe(0)
          if (resetMs > 0) expect(at(0, nowUs + resetMs * 1_000 - 1_000).used).toBeGreaterThan(0)
        }
      }),
      runs,
    )
  })

  test('units left are never negative, and a refusal or a look stores nothing, whatever the clock and the edits do', () => {
    const edits = fc.array(fc.tuple(sizes, windowsMs, fc.integer({ min: -12_000, max: dayMs })), { maxLength: 40 })
    fc.assert(
      fc.property(edits, (drawn) => {
        let state: SlidingWindowState | undefined
        let nowUs = startMs * 1_000
        for (const [size, windowMs, afterMs] of drawn) {
          nowUs += afterMs * 1_000
          for (const cost of [0, 1, Math.ceil(size / 2)]) {
            const plan = slidingWindow.plan(state, limitOf(size, windowMs), cost, nowUs)
            expect(plan.remaining).toBe(Math.max(0, size - plan.used))
            expect(Number.isSafeInteger(plan.used) && plan.used >= 0 && plan.resetMs >= 0).toBe(true)
            expect(plan.next === undefined).toBe(cost === 0 || plan.waitMs !== 0)
            state = plan.next ?? state
          }
        }
      }),
      runs,
    )
  })
})

/** The most units admitted within less than a window, over every window that ends with an admission. */
function mostInAWindow(charges: readonly Charge[], windowMs: number): number {
  const until = (atUs: number) =>
    charges.filter((charge) => charge.atUs <= atUs && charge.atUs > atUs - windowMs * 1_000)
  return Math.max(0, ...charges.map(({ atUs }) => until(atUs).reduce((sum, { cost }) => sum + cost, 0)))
}

test('over every true window fewer than 2 × size units are admitted', () => {
  const greedy = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 60 }), cost: fc.integer({ min: 1, max: 9 }) }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), greedy, (size, drawn) => {
      const limit = openLimit(limitOf(size, 100))
      const charges: Charge[] = []
      let nowUs = startMs * 1_000
      for (const { afterMs, cost } of drawn) {
        nowUs += afterMs * 1_000
        if (limit.decide(cost, nowUs).waitMs === 0) charges.push({ cost, atUs: nowUs })
      }
      expect(mostInAWindow(charges, 100)).toBeLessThan(2 * size)
    }),
    runs,
  )
})

test('an edited window keeps what it carried: a refund of a charge from before gives nothing back', () => {
  const full = openLimit(limitOf(1_000, dayMs))
  const chargedUs = (startMs + 3_600_000) * 1_000
  full.decide(1_000, chargedUs)
  const [edited, nowUs] = [limitOf(2_000, 7_200_000), chargedUs + 1_000]
  const carried = slidingWindow.plan(full.state(), edited, 1, nowUs).next
  expect(slidingWindow.refund(carried, edited, { cost: 1_000, atUs: chargedUs }, nowUs)).toBeUndefined()
  expect(slidingWindow.refund(carried, edited, { cost: 1, atUs: nowUs }, nowUs)?.current).toBe(1_000)
})
