import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { algorithmModels } from '../algorithms/models.ts'
import type { ModelArguments } from '../algorithms/plan.ts'
import { periodBoundaries } from '../calendar/calendar.ts'
import { type Algorithm, algorithms, type PeriodUnit } from '../limits/limit.ts'
import { type Admission, checkHeld, type HeldLimit } from './check-held.ts'
import { type ClockOffset, type ClockReading, followsClock, narrowOffset, noOffset, tellsEnd } from './store-clock.ts'

/** Half a minute before a day begins in Kathmandu. */
const startMs = Date.UTC(2026, 10, 22, 18, 14, 30)

const limitOf = (algorithm: Algorithm): HeldLimit => ({
  algorithm,
  size: 20,
  capacity: algorithm === 'token_bucket' ? 8 : 20,
  span: { kind: 'window', ms: 1_000 },
  boundariesAt: () => undefined,
})
const perPeriod = (unit: PeriodUnit): HeldLimit => ({
  algorithm: 'fixed_window',
  size: 20,
  capacity: 20,
  span: { kind: 'period', unit },
  boundariesAt: (ms) => periodBoundaries(unit, 'Asia/Kathmandu', 1, ms),
})

/** A request: after the one before, on its way there, on its way back; in milliseconds. */
interface Sent {
  readonly gapMs: number
  readonly thereMs: number
  readonly backMs: number
  readonly cost: number
  /** The store that decides. */
  readonly store: number
}

/** Decides requests by real counts, one for each store, and returns what their client sees of those admitted. */
function play(limit: HeldLimit, sent: readonly Sent[], offsetMs: number, unitMs: number) {
  const model = algorithmModels[limit.algorithm]
  let sentMs = startMs
  const arriving = sent.map(({ gapMs, thereMs, backMs, ...rest }) => {
    sentMs += gapMs
    return {
      ...rest,
      sentMs: Math.floor(sentMs),
      atMs: sentMs + thereMs,
      answeredMs: Math.ceil(sentMs + thereMs + backMs),
    }
  })
  const states: (object | undefined)[] = []
  const seen: (ClockReading & { readonly cost: number })[] = []
  for (const { cost, store, atMs, ...times } of arriving.toSorted((a, b) => a.atMs - b.atMs)) {
    const nowUs = Math.floor((atMs + offsetMs) * 1_000)
    const boundaries = limit.boundariesAt(Math.floor(nowUs / 1_000))
    const asked: ModelArguments = { ...limit, boundaries }
    const { waitMs, next, resetMs } = model.plan(states[store], asked, cost, nowUs)
    if (waitMs !== 0) continue
    states[store] = next
    seen.push({ ...times, cost, unitMs, resetMs: Math.ceil(resetMs / unitMs) * unitMs })
  }
  return seen
}

/** What a client can know of the store's clock from these answers. */
function offsetOf(limit: HeldLimit, seen: readonly ClockReading[]): ClockOffset | undefined {
  if (!followsClock(limit)) return noOffset
  const periods = (ms: number) => limit.boundariesAt(ms) ?? [0, 0, 0]
  return seen
    .filter((one) => tellsEnd(limit, one))
    .reduce<ClockOffset | undefined>((known, one) => {
      const narrowed = narrowOffset(limit, known, one, periods)
      expect(narrowed).toBeDefined()
      return narrowed
    }, undefined)
}

const moved = (seen: readonly (ClockReading & { readonly cost: number })[], { leastMs, mostMs }: ClockOffset) =>
  seen.map(({ sentMs, answeredMs, cost }): Admission => ({ fromMs: sentMs + leastMs, toMs: answeredMs + mostMs, cost }))

const way = fc.oneof(
  { weight: 9, arbitrary: fc.double({ min: 0, max: 5, noNaN: true }) },
  fc.double({ min: 0, max: 200, noNaN: true }),
)
const requests = (stores: number) =>
  fc.array(
    fc.record({
      gapMs: fc.double({ min: 0, max: 30, noNaN: true }),
      thereMs: way,
      backMs: way,
      cost: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 7 })),
      store: fc.integer({ min: 0, max: stores - 1 }),
    }),
    { minLength: 30, maxLength: 200 },
  )

test.each(algorithms)(
  'what one %s has admitted is never called broken, whatever clocks and networks do',
  (algorithm) => {
    const limit = limitOf(algorithm)
    const check = (sent: readonly Sent[], offsetMs: number) => {
      const seen = play(limit, sent, offsetMs, 1)
      const offset = offsetOf(limit, seen)
      if (offset !== undefined) expect(checkHeld(limit, moved(seen, offset))).toBeUndefined()
    }
    fc.assert(fc.property(requests(1), fc.double({ min: -90_000, max: 90_000, noNaN: true }), check), { numRuns: 300 })
  },
)

const units: readonly PeriodUnit[] = ['minute', 'hour', 'day']
test.each(units)(
  'what a limit by the calendar (%s) has admitted is never called broken, by answers in whole seconds too',
  (unit) => {
    const limit = perPeriod(unit)
    const check = (sent: readonly Sent[], offsetMs: number) => {
      const slower = sent.map((one) => ({ ...one, gapMs: one.gapMs * 100 }))
      const seen = play(limit, slower, offsetMs, 1_000)
      const offset = offsetOf(limit, seen)
      if (offset !== undefined) expect(checkHeld(limit, moved(seen, offset))).toBeUndefined()
    }
    fc.assert(fc.property(requests(1), fc.double({ min: -20_000, max: 20_000, noNaN: true }), check), { numRuns: 60 })
  },
)

/** Steady requests of cost 1, by turns at two stores. */
const steady = Array.from(
  { length: 400 },
  (_, at): Sent => ({ gapMs: 10, thereMs: 1, backMs: 1, cost: 1, store: at % 2 }),
)

test.each(algorithms)(
  'a %s whose counts are in two stores is called broken, with what was used and when',
  (algorithm) => {
    const limit = limitOf(algorithm)
    const seen = play(limit, steady, 250, 1)
    const offset = offsetOf(limit, seen)
    const breach = checkHeld(limit, moved(seen, offset ?? noOffset))
    const one = play(
      limit,
      steady.map((sent) => ({ ...sent, store: 0 })),
      250,
      1,
    )
    // As many more as two admit than one, but for what one has flowed back by the end.
    expect(breach?.requests).toBeGreaterThan((seen.length - one.length) / 2)
    expect(breach).toMatchObject({ used: limit.capacity, cost: 1, units: breach?.requests })
    expect(breach?.atMs).toBeLessThan(startMs + 1_500)
  },
)

test('a single unit too many in a window is called broken, and one in the next window is not', () => {
  const limit = limitOf('fixed_window')
  const at = (ms: number): Admission => ({ fromMs: startMs + ms, toMs: startMs + ms + 2, cost: 1 })
  const full = Array.from({ length: 20 }, (_, position) => at(100 + position))
  expect(checkHeld(limit, [...full, at(500)])).toEqual({
    atMs: startMs + 502,
    used: 20,
    cost: 1,
    requests: 1,
    units: 1,
  })
  expect(checkHeld(limit, [...full, at(1_000)])).toBeUndefined()
  // It may have been decided in either: its answer came after the border.
  expect(checkHeld(limit, [...full, at(999)])).toBeUndefined()
})

test('a request that was under way for longer than those after it may have been decided before them', () => {
  const limit = limitOf('fixed_window')
  const next = Array.from(
    { length: 20 },
    (_, at): Admission => ({ fromMs: startMs + 1_100 + at, toMs: startMs + 1_105 + at, cost: 1 }),
  )
  const slow = (fromMs: number): Admission => ({ fromMs: startMs + fromMs, toMs: startMs + 1_300, cost: 1 })
  expect(checkHeld(limit, [slow(990), ...next])).toBeUndefined()
  expect(checkHeld(limit, [slow(1_010), ...next])).toMatchObject({ requests: 1 })
})

test('costs that differ are charged in parts at a border, and still no more than the size fits', () => {
  const limit = limitOf('fixed_window')
  const of = (ms: number, cost: number): Admission => ({ fromMs: startMs + ms, toMs: startMs + ms + 4, cost })
  expect(checkHeld(limit, [of(100, 18), of(998, 5), of(1_100, 15), of(1_200, 2)])).toBeUndefined()
  expect(checkHeld(limit, [of(100, 18), of(998, 5), of(1_100, 15), of(1_200, 3)])).toMatchObject({ requests: 1 })
  expect(checkHeld(limit, [of(100, 21)])).toMatchObject({ used: 0, cost: 21, requests: 1 })
})
