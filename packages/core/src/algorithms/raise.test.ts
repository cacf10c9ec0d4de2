import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fixedWindow } from './fixed-window.ts'
import type { AlgorithmModel, ModelArguments } from './plan.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

const windowMs = 60_000
const startUs = 1_790_000_000_000_000 - (1_790_000_000_000_000 % (windowMs * 1_000))
const limit: ModelArguments = {
  size: 10_000,
  capacity: 10_000,
  span: { kind: 'window', ms: windowMs },
  boundaries: undefined,
}

interface History {
  readonly charges: readonly { readonly afterUs: number; readonly cost: number }[]
  readonly at: number
  readonly more: number
  readonly lookAfterUs: number
}

/** Requests at ascending times that all fit; the one at `settled` turns out to have cost `more` at the end. */
const history: fc.Arbitrary<History> = fc.record({
  charges: fc.array(
    fc.record({ afterUs: fc.integer({ min: 1, max: 9_000_000 }), cost: fc.integer({ min: 0, max: 30 }) }),
    { minLength: 1, maxLength: 12 },
  ),
  at: fc.nat(),
  more: fc.integer({ min: 1, max: 500 }),
  lookAfterUs: fc.integer({ min: 1, max: 90_000_000 }),
})

/** What is used at the end: with the settlement, and had the request cost that much from the start. */
function play<State>(model: AlgorithmModel<State>, { charges, at, more, lookAfterUs }: History) {
  const settledAt = at % charges.length
  let nowUs = startUs
  let settled: State | undefined
  let asIf: State | undefined
  let atUs = 0
  for (const [number, { afterUs, cost }] of charges.entries()) {
    nowUs += afterUs
    settled = model.plan(settled, limit, cost, nowUs).next ?? settled
    const higher = number === settledAt ? cost + more : cost
    asIf = model.plan(asIf, limit, higher, nowUs).next ?? asIf
    if (number === settledAt) atUs = nowUs
  }
  nowUs += lookAfterUs
  const before = model.plan(settled, limit, 0, nowUs).used
  settled = model.raise(settled, limit, { cost: more, atUs }, nowUs) ?? settled
  const used = (state: State | undefined) => model.plan(state, limit, 0, nowUs).used
  return { before, used: used(settled), asIf: used(asIf), more }
}

test('windows and logs: a raised cost leaves exactly what would be used had it been that from the start', () => {
  fc.assert(
    fc.property(history, (drawn) => {
      for (const { used, asIf } of [play(fixedWindow, drawn), play(slidingWindow, drawn), play(slidingLog, drawn)]) {
        expect(used).toBe(asIf)
      }
    }),
    { numRuns: 500 },
  )
})

test('token_bucket: a raised cost never leaves less used than had it been that from the start, and at most its units more', () => {
  fc.assert(
    fc.property(history, (drawn) => {
      const { before, used, asIf, more } = play(tokenBucket, drawn)
      expect(used).toBeGreaterThanOrEqual(asIf)
      expect(used).toBeLessThanOrEqual(before + more + 1)
    }),
  )
})

test('a log and a bucket can only be full, a window counts all', () => {
  const small = { ...limit, size: 10, capacity: 10 }
  const usedAfter = <State>(model: AlgorithmModel<State>) => {
    const state = model.plan(undefined, small, 4, startUs).next
    const raised = model.raise(state, small, { cost: 90, atUs: startUs }, startUs + 1)
    return model.plan(raised, small, 0, startUs + 1)
  }
  expect(usedAfter(fixedWindow)).toMatchObject({ used: 94, remaining: 0 })
  expect(usedAfter(slidingWindow)).toMatchObject({ used: 94, remaining: 0 })
  expect(usedAfter(slidingLog)).toMatchObject({ used: 10, remaining: 0 })
  expect(usedAfter(tokenBucket)).toMatchObject({ used: 10, remaining: 0 })
})
