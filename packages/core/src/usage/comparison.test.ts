import { expect, it } from 'vitest'
import { readComparison } from './comparison.ts'
import { parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

it.each([
  ['2026-03-01', '2026-04-01', 'UTC', 'day', '2026-02-01T00:00Z', { unit: 'day', count: 28 }],
  ['2026-03-01', '2026-04-01', 'UTC', 'month', '2026-02-01T00:00Z', { unit: 'month', count: 1 }],
  ['2026-01-01', '2027-01-01', 'UTC', 'month', '2025-01-01T00:00Z', { unit: 'month', count: 12 }],
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

it('a period is compared with the month before, though they begin on other days', () => {
  const calendar = { timeZone: 'UTC', anchor: 31 }
  const asked = { period: '2026-11', compare: 'previous', order: '-denied', step: 'total' }
  expect(parseUsageQuery(asked, { nowMs, calendar })).toMatchObject({
    query: { comparison: { fromMs: Date.parse('2026-10-31'), toMs: Date.parse('2026-11-30'), measure: 'denied' } },
  })
})

it('nothing else is compared with', () => {
  const span = { fromMs: 0, toMs: 1, timeZone: 'UTC', step: 'total', previousMs: undefined }
  const problems: string[] = []
  expect(readComparison('2025-11-01', span, 'cost', problems)).toBeUndefined()
  expect(problems).toEqual(['compare must be previous'])
  expect(parseUsageQuery({ compare: 'previous', time_zone: 'Mars' }, { nowMs })).toMatchObject({ kind: 'problems' })
})
