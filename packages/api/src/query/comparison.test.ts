import { expect, it } from 'vitest'
import { parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

it.each([
  ['2026-03-01', '2026-04-01', 'UTC', 'day', '2026-02-01T00:00Z', { unit: 'day', count: 28 }],
  ['2026-03-01', '2026-04-01', 'UTC', 'month', '2026-02-01T00:00Z', { unit: 'month', count: 1 }],
  ['2025-01-01', '2026-01-01', 'UTC', 'month', '2024-01-01T00:00Z', { unit: 'month', count: 12 }],
  ['2026-03-02', '2026-03-09', 'UTC', 'week', '2026-02-23T00:00Z', { unit: 'day', count: 7 }],
  ['2026-03-01', '2026-04-01', 'UTC', 'week', '2026-02-01T00:00Z', { unit: 'day', count: 28 }],
  // The day that clocks go back has 25 hours, the one before 24.
  ['2026-11-01', '2026-11-02', 'America/New_York', 'day', '2026-10-31T00:00-04:00', { unit: 'day', count: 1 }],
  ['2026-11-01', '2026-11-02', 'America/New_York', 'hour', '2026-10-31T00:00-04:00', { unit: 'second', count: 86_400 }],
  [
    '2026-03-01T01:30:00Z',
    '2026-03-01T03:00:00Z',
    'UTC',
    'hour',
    '2026-03-01T00:00Z',
    { unit: 'second', count: 3_600 },
  ],
] as const)('%s to %s in %s by %s is compared with what is from %s', (from, to, timeZone, step, earlier, shift) => {
  const parsed = parseUsageQuery({ from, to, time_zone: timeZone, step, compare: 'previous' }, { nowMs })
  if (parsed.kind === 'problems') throw new Error(parsed.problems.join())
  const { comparison, fromMs } = parsed.query
  expect(comparison).toEqual({ fromMs: Date.parse(earlier), toMs: fromMs, shift, measure: 'cost' })
})

it.each([
  ['hour', 'previous', '11:00', '12:15', '09:45'],
  ['total', 'now-2h', '11:00', '12:15', '09:45'],
  ['total', '2026-11-21T01:20:00Z', '11:00', '12:15', '01:15'],
  ['minute', 'previous', '11:14', '12:15', '10:13'],
] as const)(
  'an hour that ends at 12:14:30, by %s with %s, is from %s to %s, and as long as what is from %s',
  (...of) => {
    const [step, compare, from, to, earlier] = of
    const at = Date.parse('2026-11-21T12:14:30Z')
    const parsed = parseUsageQuery({ from: 'now-1h', step, compare }, { nowMs: at })
    if (parsed.kind === 'problems') throw new Error(parsed.problems.join())
    const { fromMs, toMs, comparison } = parsed.query
    const ms = (time: string) => Date.parse(`2026-11-21T${time}Z`)
    expect([fromMs, toMs]).toEqual([ms(from), ms(to)])
    expect(comparison).toMatchObject({ fromMs: ms(earlier), toMs: ms(earlier) + toMs - fromMs })
  },
)

it('a period is compared with the month before, though they begin on other days', () => {
  const calendar = { timeZone: 'UTC', anchor: 31 }
  const asked = { period: '2026-11', compare: 'previous', order: '-denied', step: 'total' }
  expect(parseUsageQuery(asked, { nowMs: Date.parse('2027-02-01'), calendar })).toMatchObject({
    query: { comparison: { fromMs: Date.parse('2026-10-31'), toMs: Date.parse('2026-11-30'), measure: 'denied' } },
  })
})

it.each([
  ['2026-10-01', '2026-11-01', '2025-10-01', '2025-10-01T00:00Z', '2025-11-01T00:00Z', { unit: 'day', count: 365 }],
  // What runs is compared so far.
  ['2026-11-01', '2026-12-01', '2025-11-01', '2025-11-01T00:00Z', '2025-11-21T12:00Z', { unit: 'day', count: 365 }],
  ['2026-11-01', '2026-12-01', 'previous', '2026-10-01T00:00Z', '2026-10-21T12:00Z', { unit: 'day', count: 31 }],
  ['2026-03-01', '2026-04-01', '2026-02-01', '2026-02-01T00:00Z', '2026-03-01T00:00Z', { unit: 'day', count: 28 }],
  ['now-1h', 'now', 'now-1d', '2026-11-20T12:00Z', '2026-11-20T13:00Z', { unit: 'day', count: 1 }],
] as const)('%s to %s is compared with as long a span from %s on', (from, to, compare, earlier, end, shift) => {
  expect(parseUsageQuery({ from, to, compare, step: 'day' }, { nowMs })).toMatchObject({
    query: { comparison: { fromMs: Date.parse(earlier), toMs: Date.parse(end), shift, measure: 'cost' } },
  })
})

it('a span that is not over when the question’s begins is not compared with, nor what is no time', () => {
  const ask = (compare: string) => parseUsageQuery({ from: '2026-11-02', to: '2026-11-04', compare }, { nowMs })
  expect(ask('2026-10-31')).toMatchObject({ kind: 'query' })
  const late = 'compare: the period starting there ends at 2026-11-03T00:00:00.000Z, which is after from'
  expect(ask('2026-11-01')).toEqual({ kind: 'problems', problems: [late] })
  expect(ask('last')).toMatchObject({ problems: [expect.stringContaining('compare must be like 2026-01-31')] })
  expect(parseUsageQuery({ compare: 'previous', time_zone: 'Mars' }, { nowMs })).toMatchObject({ kind: 'problems' })
})
