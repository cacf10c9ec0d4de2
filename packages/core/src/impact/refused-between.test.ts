import { expect, test } from 'vitest'
import type { Limit } from '../limits/limit.ts'
import { type MinuteDemand, refusedBetween } from './refused-between.ts'

const minuteMs = 60_000
const startMs = Date.parse('2026-11-25T00:00:00Z')
const limit: Limit = {
  ...{ name: 'l', algorithm: 'fixed_window', size: 100, capacity: 100, span: { kind: 'window', ms: minuteMs } },
  ...{ by: [{ kind: 'subject' }], applies: 'plan', mode: 'enforce', blockMs: 0, onExceed: { kind: 'deny' }, lease: 0 },
  ...{ onUnavailable: 'allow', thresholds: [], cooldownMs: 0 },
}
/** So many requests of this cost in each minute. */
const each = (counts: readonly number[], cost = 1): readonly MinuteDemand[] =>
  counts.map((count, at) => ({
    ms: startMs + at * minuteMs,
    count,
    units: count * cost,
    costMax: cost,
    most: count * cost,
  }))
const day = (ms: number) => {
  const first = ms - (ms % 86_400_000)
  return [first, first + 86_400_000, first + 2 * 86_400_000] as const
}
const refused = (of: Partial<Limit>, demands: readonly MinuteDemand[], fromMs = startMs) =>
  refusedBetween({ ...limit, ...of }, demands, { fromMs, boundariesAt: (_, ms) => day(ms) })
const exactly = (count: number) => ({ atLeast: count, atMost: count })

test('Of fixed windows of whole minutes and equal costs the number of refusals is known', () => {
  expect(refused({}, each([120, 100, 0, 103]))).toEqual(exactly(23))
  expect(refused({}, each([30, 21], 5))).toEqual(exactly(11))
  expect(refused({ span: { kind: 'window', ms: 3 * minuteMs } }, each([60, 60, 60, 100]))).toEqual(exactly(80))
  expect(refused({ span: { kind: 'period', unit: 'day' } }, each([90, 90, 0, 90]))).toEqual(exactly(170))
})

test('Where nothing can meet a limit, no refusal is possible, whatever the algorithm', () => {
  for (const algorithm of ['fixed_window', 'sliding_window', 'sliding_log', 'token_bucket'] as const) {
    expect(refused({ algorithm }, each(Array(200).fill(50)))).toEqual(exactly(0))
  }
})

test('A steady overload keeps the bounds within a window of each two, and of each three of a bucket', () => {
  const overload = each(Array(60).fill(120))
  expect(refused({ algorithm: 'sliding_log' }, overload)).toEqual({ atLeast: 60 * 20, atMost: 60 * 120 - 30 * 100 })
  const bucket = refused({ algorithm: 'token_bucket' }, overload)
  expect(bucket).toEqual({ atLeast: 60 * 20 - 100, atMost: 60 * 120 - 20 * 99 })
})

test('A count that looks back may refuse what comes after a busy minute, and one of fixed windows does not', () => {
  const across = each([60, 60, 0, 60])
  for (const algorithm of ['sliding_window', 'sliding_log', 'token_bucket'] as const) {
    expect(refused({ algorithm }, across)).toEqual({ atLeast: 0, atMost: 60 })
  }
  expect(refused({}, across)).toEqual(exactly(0))
})

test('Demand before the span fills the counts, and none of its refusals count', () => {
  const hour = { span: { kind: 'window', ms: 60 * minuteMs } } as const
  expect(refused(hour, each([80, 40, 10]), startMs + minuteMs)).toEqual(exactly(30))
  expect(refused(hour, each([140, 10]), startMs + minuteMs)).toEqual({ atLeast: 0, atMost: 10 })
})

test('After a refusal a block may refuse all that comes while it lasts', () => {
  expect(refused({ blockMs: 3 * minuteMs }, each([120, 10, 10, 10, 10]))).toEqual({ atLeast: 20, atMost: 150 })
})

test('Where costs differ, one may be nearly all of it, and the bounds are as wide', () => {
  const [demand] = each([30])
  const mixed = { ms: startMs, count: 30, units: 130, costMax: 130, most: 130, ...(demand && { ms: demand.ms }) }
  expect(refused({}, [mixed])).toEqual({ atLeast: 1, atMost: 30 })
})

test('What other limits keep from being charged does not fill a count', () => {
  const flood = each([400, 400, 0, 30]).map((one) => ({ ...one, most: Math.min(one.units, 40) }))
  expect(refused({ span: { kind: 'period', unit: 'day' } }, flood)).toEqual({ atLeast: 730, atMost: 30 })
  expect(refused({ algorithm: 'sliding_log' }, flood)).toMatchObject({ atMost: 0 })
})
