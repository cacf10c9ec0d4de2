import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type SlidingLogState, slidingLog } from './sliding-log.ts'

const windowMs = 1_000
const windowUs = windowMs * 1_000
const startUs = 1_790_000_000_000_000
const limitOf = (size: number) =>
  ({ size, capacity: size, span: { kind: 'window', ms: windowMs }, boundaries: undefined }) as const

interface Call {
  readonly cost: number
  readonly sinceLastUs: number
}

interface Admission {
  readonly atUs: number
  readonly cost: number
}

/** Bursts at one microsecond, gaps of about a window, and gaps of exactly one. */
const calls = fc.array(
  fc.record({
    cost: fc.integer({ min: 0, max: 6 }),
    sinceLastUs: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: windowUs / 2 }),
      fc.integer({ min: windowUs - 2, max: windowUs + 2 }),
    ),
  }),
  { maxLength: 60 },
)
const sizes = fc.integer({ min: 1, max: 9 })

/** Charges all calls; what was admitted, and the state after it. */
function run(all: readonly Call[], size: number) {
  const admissions: Admission[] = []
  let state: SlidingLogState | undefined
  let nowUs = startUs
  for (const { cost, sinceLastUs } of all) {
    nowUs += sinceLastUs
    const { waitMs, next } = slidingLog.plan(state, limitOf(size), cost, nowUs)
    if (waitMs === 0) admissions.push({ atUs: nowUs, cost })
    state = next ?? state
  }
  return { admissions, state, nowUs }
}

/** The units of every true window: one that holds the most begins at an admission. */
const unitsOfWindows = (admissions: readonly Admission[]) =>
  admissions.map(({ atUs: fromUs }) =>
    admissions
      .filter(({ atUs }) => atUs >= fromUs && atUs < fromUs + windowUs)
      .reduce((units, { cost }) => units + cost, 0),
  )

describe('whatever is asked and when', () => {
  test('no true window of the length ever admits more than the size', () => {
    fc.assert(
      fc.property(calls, sizes, (all, size) => {
        expect(Math.max(0, ...unitsOfWindows(run(all, size).admissions))).toBeLessThanOrEqual(size)
      }),
    )
  })

  test('no cost is denied that the window before it had capacity for', () => {
    fc.assert(
      fc.property(calls, sizes, fc.integer({ min: 1, max: 9 }), (all, size, cost) => {
        const { admissions, state, nowUs } = run(all, size)
        const counted = admissions.filter(({ atUs }) => atUs > nowUs - windowUs)
        const used = counted.reduce((units, admission) => units + admission.cost, 0)
        expect(slidingLog.plan(state, limitOf(size), cost, nowUs).waitMs === 0).toBe(used + cost <= size)
      }),
    )
  })

  test('waiting exactly as long as told admits, and a millisecond less does not', () => {
    fc.assert(
      fc.property(calls, sizes, fc.nat({ max: 2_000_000 }), (all, size, setBackUs) => {
        const { state, nowUs } = run(all, size)
        const atUs = nowUs - setBackUs
        for (let cost = 1; cost <= size; cost += 1) {
          const { waitMs } = slidingLog.plan(state, limitOf(size), cost, atUs)
          expect(waitMs).toBeGreaterThanOrEqual(0)
          const waitOf = (laterMs: number) => slidingLog.plan(state, limitOf(size), cost, atUs + laterMs * 1_000).waitMs
          expect(waitOf(waitMs)).toBe(0)
          if (waitMs > 0) expect(waitOf(waitMs - 1)).toBe(1)
        }
      }),
    )
  })

  test('used and remaining add up to the size, and after the time told all is free', () => {
    fc.assert(
      fc.property(calls, sizes, (all, size) => {
        const { state, nowUs } = run(all, size)
        const { used, remaining, resetMs } = slidingLog.plan(state, limitOf(size), 0, nowUs)
        expect(used + remaining).toBe(size)
        const usedAfter = (ms: number) => slidingLog.plan(state, limitOf(size), 0, nowUs + ms * 1_000).used
        expect(usedAfter(resetMs)).toBe(0)
        if (resetMs > 0) expect(usedAfter(resetMs - 1)).toBeGreaterThan(0)
      }),
    )
  })

  test('a refusal, a cost of 0 and a cost above the size store nothing', () => {
    fc.assert(
      fc.property(calls, sizes, fc.integer({ min: 0, max: 12 }), (all, size, cost) => {
        const { state, nowUs } = run(all, size)
        const { waitMs, next } = slidingLog.plan(state, limitOf(size), cost, nowUs)
        expect(next === undefined).toBe(waitMs !== 0 || cost === 0)
        expect(waitMs < 0).toBe(cost > size)
      }),
    )
  })

  test('a refund leaves the log as if its charge had never been', () => {
    fc.assert(
      fc.property(calls, sizes, fc.nat(), (all, size, pick) => {
        const { admissions, state, nowUs } = run(all, size)
        const back = admissions[pick % Math.max(1, admissions.length)]
        if (back === undefined) return
        const before = slidingLog.plan(state, limitOf(size), 0, nowUs).used
        const after = slidingLog.refund(state, limitOf(size), back, nowUs)
        const counts = back.cost > 0 && back.atUs > nowUs - windowUs
        expect(after !== undefined).toBe(counts)
        if (after === undefined) return
        const left = admissions.filter((admission) => admission !== back && admission.atUs > nowUs - windowUs)
        expect(after.stampsUs).toEqual(left.flatMap(({ atUs, cost }) => Array<number>(cost).fill(atUs)))
        expect(slidingLog.plan(after, limitOf(size), 0, nowUs).used).toBe(before - back.cost)
      }),
    )
  })
})

test('a refund returns at most the units charged at its time', () => {
  const state = { stampsUs: [startUs, startUs + 1, startUs + 1, startUs + 2], windowUs: 60_000_000 }
  const refundOf = (cost: number, atUs: number) => slidingLog.refund(state, limitOf(9), { cost, atUs }, startUs + 2)
  expect(refundOf(7, startUs + 1)?.stampsUs).toEqual([startUs, startUs + 2])
  expect(refundOf(1, startUs + 1)?.stampsUs).toEqual([startUs, startUs + 1, startUs + 2])
  expect(refundOf(1, startUs + 3)).toBeUndefined()
  expect(refundOf(0, startUs)).toBeUndefined()
})
