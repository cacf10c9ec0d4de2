import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelArguments, Plan } from './plan.ts'
import { type TokenBucketState, tokenBucket } from './token-bucket.ts'

const dayMs = 86_400_000
const startUs = 1_790_000_000_000_123

interface Bucket {
  readonly size: number
  readonly windowMs: number
  readonly burst: number
}

const limitOf = ({ size, windowMs, burst }: Bucket): ModelArguments => ({
  size,
  capacity: burst,
  span: { kind: 'window', ms: windowMs },
  boundaries: undefined,
})

/** One limit over time, as the script keeps it. */
function openBucket(bucket: Bucket) {
  let state: TokenBucketState | undefined
  return {
    look: (cost: number, nowUs: number) => tokenBucket.plan(state, limitOf(bucket), cost, nowUs),
    decide(cost: number, nowUs: number): Plan<TokenBucketState> {
      const plan = tokenBucket.plan(state, limitOf(bucket), cost, nowUs)
      state = plan.next ?? state
      return plan
    },
    refund(cost: number, atUs: number, nowUs: number) {
      state = tokenBucket.refund(state, limitOf(bucket), { cost, atUs }, nowUs) ?? state
    },
  }
}

interface Charge {
  readonly cost: number
  readonly atUs: number
}

/**
 * What the definition counts: GCRA over all charges that were not refunded, in whole parts of 1 / size microseconds.
 */
function usedByDefinition(charges: readonly Charge[], { size, windowMs }: Bucket, nowUs: number): bigint {
  const unit = BigInt(windowMs) * 1_000n
  const at = (us: number) => BigInt(us) * BigInt(size)
  const later = (one: bigint, other: bigint) => (one > other ? one : other)
  const full = charges.reduce((sum, { cost, atUs }) => later(sum, at(atUs)) + BigInt(cost) * unit, 0n)
  return (later(full, at(nowUs)) - at(nowUs) + unit - 1n) / unit
}

const unitsMax = 90_000_000
const spansMs = fc.constantFrom(100, 1_000, 7_777, 60_000, 3_600_000, dayMs, 7 * dayMs, 366 * dayMs - 1, 366 * dayMs)
const units = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: unitsMax }),
  fc.integer({ min: unitsMax - 9, max: unitsMax }),
)
const buckets = fc
  .record({ size: units, windowMs: spansMs, burst: units })
  .filter(({ size, windowMs, burst }) => BigInt(burst) * BigInt(windowMs) <= BigInt(366 * dayMs) * BigInt(size))
/** A share of the burst and of the time to fill it, so that costs and steps mean the same for every bucket. */
const steps = fc.array(
  fc.record({
    share: fc.constantFrom(0, 0.001, 0.1, 0.2, 0.5, 0.999, 1),
    more: fc.integer({ min: 0, max: 1 }),
    afterShare: fc.constantFrom(0, 0, 0.001, 0.05, 0.2, 0.4, 0.9, 1.7),
    afterUs: fc.integer({ min: 0, max: 2_000 }),
    refund: fc.integer({ min: 0, max: 12 }),
  }),
  { minLength: 5, maxLength: 60 },
)

function* walk(bucket: Bucket, drawn: typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never) {
  let nowUs = startUs
  for (const { share, more, afterShare, afterUs, refund } of drawn) {
    nowUs += Math.floor(((bucket.burst * bucket.windowMs) / bucket.size) * 1_000 * afterShare) + afterUs
    yield { nowUs, cost: Math.min(bucket.burst, Math.floor(bucket.burst * share) + more), refund }
  }
}

const runs = { numRuns: 300 }

describe('over any run of requests, at any size, window and burst', () => {
  test('the count is what the definition counts, to the unit', () => {
    fc.assert(
      fc.property(buckets, steps, (bucket, drawn) => {
        const opened = openBucket(bucket)
        const charges: Charge[] = []
        for (const { nowUs, cost } of walk(bucket, drawn)) {
          const before = usedByDefinition(charges, bucket, nowUs)
          const { waitMs, used, remaining, next } = opened.decide(cost, nowUs)
          expect(waitMs === 0).toBe(cost === 0 || before + BigInt(cost) <= BigInt(bucket.burst))
          expect(next === undefined).toBe(cost === 0 || waitMs !== 0)
          if (waitMs === 0) charges.push({ cost, atUs: nowUs })
          expect(BigInt(used)).toBe(usedByDefinition(charges, bucket, nowUs))
          expect(remaining).toBe(bucket.burst - used)
        }
      }),
      runs,
    )
  })

  test('waiting exactly as long as told admits and a millisecond less does not; all is free when told, not before', () => {
    fc.assert(
      fc.property(buckets, steps, (bucket, drawn) => {
        const opened = openBucket(bucket)
        for (const { nowUs, cost } of walk(bucket, drawn)) {
          const { waitMs } = opened.decide(cost, nowUs)
          if (waitMs > 0) {
            expect(opened.look(cost, nowUs + waitMs * 1_000).waitMs).toBe(0)
            expect(opened.look(cost, nowUs + waitMs * 1_000 - 1_000).waitMs).toBe(1)
          }
          const { resetMs } = opened.look(0, nowUs)
          expect(opened.look(0, nowUs + resetMs * 1_000).used).toBe(0)
          if (resetMs > 0) expect(opened.look(0, nowUs + resetMs * 1_000 - 1_000).used).toBeGreaterThan(0)
        }
      }),
      runs,
    )
  })

  test('refunds never give back more than the definition does with the refunded requests left out, and never take', () => {
    fc.assert(
      fc.property(buckets, steps, (bucket, drawn) => {
        const opened = openBucket(bucket)
        const charges: Charge[] = []
        for (const { nowUs, cost, refund } of walk(bucket, drawn)) {
          if (opened.decide(cost, nowUs).waitMs === 0 && cost > 0) charges.push({ cost, atUs: nowUs })
          const before = opened.look(0, nowUs).used
          const [refunded] = charges.splice(refund, 1)
          if (refunded !== undefined) opened.refund(refunded.cost, refunded.atUs, nowUs)
          const { used } = opened.look(0, nowUs)
          expect(used).toBeLessThanOrEqual(before)
          expect(BigInt(used)).toBeGreaterThanOrEqual(usedByDefinition(charges, bucket, nowUs))
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('units left are never negative, whatever the clock and the edits do', () => {
    const edits = fc.array(fc.tuple(buckets, fc.integer({ min: -12_000, max: dayMs })), { maxLength: 40 })
    fc.assert(
      fc.property(edits, (drawn) => {
        let state: TokenBucketState | undefined
        let nowUs = startUs
        for (const [bucket, afterMs] of drawn) {
          nowUs += afterMs * 1_000
          for (const cost of [0, 1, Math.ceil(bucket.burst / 2)]) {
            const plan = tokenBucket.plan(state, limitOf(bucket), cost, nowUs)
            expect(plan.remaining).toBe(Math.max(0, bucket.burst - plan.used))
            expect(Number.isSafeInteger(plan.used) && plan.used >= 0 && plan.resetMs >= 0).toBe(true)
            state = plan.next ?? state
          }
        }
      }),
      runs,
    )
  })
})

test('a backlog of just some units, or the least more or less, is rounded up to the unit where doubles alone would miss', () => {
  const aside = fc.constantFrom(-1, 0, 1)
  fc.assert(
    fc.property(buckets, fc.double({ min: 0.5, max: 1, noNaN: true }), aside, (bucket, share, more) => {
      const { size, windowMs, burst } = bucket
      const parts = BigInt(Math.ceil(burst * share)) * BigInt(windowMs) * 1_000n + BigInt(more)
      const state = {
        size,
        windowMs,
        fullUs: startUs + Number(parts / BigInt(size)),
        part: Number(parts % BigInt(size)),
        lowUs: 0,
        lowAfterUs: startUs,
        sinceUs: startUs,
        lastUs: startUs,
      }
      const { used } = tokenBucket.plan(state, limitOf(bucket), 0, startUs)
      expect(used).toBe(Math.ceil(burst * share) + (more > 0 ? 1 : 0))
    }),
    { numRuns: 1_000 },
  )
})

test('over every true window at most burst + size units are admitted', () => {
  const greedy = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 60 }), cost: fc.integer({ min: 1, max: 9 }) }))
  const small = fc.integer({ min: 1, max: 40 })
  fc.assert(
    fc.property(small, small, greedy, (size, burst, drawn) => {
      const opened = openBucket({ size, windowMs: 100, burst })
      const charges: Charge[] = []
      let nowUs = startUs
      for (const { afterMs, cost } of drawn) {
        nowUs += afterMs * 1_000
        if (opened.decide(cost, nowUs).waitMs === 0) charges.push({ cost, atUs: nowUs })
        const inWindow = charges.filter(({ atUs }) => atUs > nowUs - 100_000)
        expect(inWindow.reduce((sum, charge) => sum + charge.cost, 0)).toBeLessThanOrEqual(burst + size)
      }
    }),
    runs,
  )
})

const second: Bucket = { size: 1, windowMs: 1_000, burst: 10 }

test('a refund of every request in flight on a busy bucket gives all of them back, however many come between', () => {
  const opened = openBucket(second)
  const at = (index: number) => startUs + index * 10_000
  opened.decide(5, startUs)
  for (const index of [0, 1, 2, 3, 4]) expect(opened.decide(1, at(index)).waitMs).toBe(0)
  for (const index of [0, 1, 2, 3, 4]) opened.refund(1, at(index), at(10))
  expect(opened.look(0, at(10))).toMatchObject({ used: 5, resetMs: 4_900 })
})

test('a refund of a charge at another size or window gives nothing back', () => {
  const edited = limitOf({ ...second, size: 2 })
  const nowUs = startUs + 1_000
  const before = tokenBucket.plan(undefined, limitOf(second), 4, startUs).next
  const after = tokenBucket.plan(before, edited, 1, nowUs).next
  expect(tokenBucket.refund(after, edited, { cost: 4, atUs: startUs }, nowUs)).toBeUndefined()
  expect(tokenBucket.refund(before, edited, { cost: 4, atUs: startUs }, nowUs)?.fullUs).toBe(nowUs)
})
