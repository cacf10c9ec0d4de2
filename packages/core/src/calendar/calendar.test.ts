import { describe, expect, test } from 'vitest'
import { periodUnits } from '../limits/limit.ts'
import { createBoundaryCache, periodBoundaries, periodStartLabel } from './calendar.ts'

const hourMs = 3_600_000
const utc = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z')

/**
 * By their names: a unit (a month with its anchor), a zone, an instant, and the starts of its period and of the two
 * behind it.
 */
const cases = `
a minute is a minute of the clock, in any zone
  minute Asia/Kathmandu 2026-03-01T12:34:56Z 2026-03-01T12:34:00Z 2026-03-01T12:35:00Z 2026-03-01T12:36:00Z
an hour begins when the local clock shows a full one
  hour Asia/Kathmandu 2026-03-01T12:34:56Z 2026-03-01T12:15:00Z 2026-03-01T13:15:00Z 2026-03-01T14:15:00Z
an hour that occurs twice is two periods
  hour America/New_York 2026-11-01T05:59:59Z 2026-11-01T05:00:00Z 2026-11-01T06:00:00Z 2026-11-01T07:00:00Z
clocks put back by half an hour cut off a half hour
  hour Australia/Lord_Howe 2026-04-04T15:10:00Z 2026-04-04T15:00:00Z 2026-04-04T15:30:00Z 2026-04-04T16:30:00Z
a day begins at midnight in the zone of the subject
  day Asia/Kathmandu 2026-03-01T18:14:59Z 2026-02-28T18:15:00Z 2026-03-01T18:15:00Z 2026-03-02T18:15:00Z
at midnight itself the new day has begun
  day Asia/Kathmandu 2026-03-01T18:15:00Z 2026-03-01T18:15:00Z 2026-03-02T18:15:00Z 2026-03-03T18:15:00Z
a day of 23 hours ends after 23 hours
  day America/New_York 2026-03-08T12:00:00Z 2026-03-08T05:00:00Z 2026-03-09T04:00:00Z 2026-03-10T04:00:00Z
a day of 25 hours ends after 25 hours
  day Europe/Berlin 2026-10-25T22:30:00Z 2026-10-24T22:00:00Z 2026-10-25T23:00:00Z 2026-10-26T23:00:00Z
where midnight does not exist the day begins at 01:00 (São Paulo)
  day America/Sao_Paulo 2018-11-04T12:00:00Z 2018-11-04T03:00:00Z 2018-11-05T02:00:00Z 2018-11-06T02:00:00Z
the day before a midnight that does not exist ends on time (Cairo)
  day Africa/Cairo 2024-04-25T12:00:00Z 2024-04-24T22:00:00Z 2024-04-25T22:00:00Z 2024-04-26T21:00:00Z
where midnight occurs twice the day begins at the first (Havana)
  day America/Havana 2026-11-01T04:30:00Z 2026-11-01T04:00:00Z 2026-11-02T05:00:00Z 2026-11-03T05:00:00Z
a day that has begun is not ended by clocks put back past midnight (St. John's)
  day America/St_Johns 2010-11-07T03:00:00Z 2010-11-07T02:30:00Z 2010-11-08T03:30:00Z 2010-11-09T03:30:00Z
a day that the zone skipped is no period (Samoa, 30 December 2011)
  day Pacific/Apia 2011-12-30T09:00:00Z 2011-12-29T10:00:00Z 2011-12-30T10:00:00Z 2011-12-31T10:00:00Z
a week begins on Monday
  week Europe/Berlin 2026-03-29T21:59:59Z 2026-03-22T23:00:00Z 2026-03-29T22:00:00Z 2026-04-05T22:00:00Z
a month with anchor 31 begins on the last day of shorter months
  month/31 UTC 2026-02-27T23:59:59Z 2026-01-31T00:00:00Z 2026-02-28T00:00:00Z 2026-03-31T00:00:00Z
the anchor comes back to 31 after a short month
  month/31 UTC 2026-02-28T00:00:00Z 2026-02-28T00:00:00Z 2026-03-31T00:00:00Z 2026-04-30T00:00:00Z
in a leap year anchor 30 falls on the leap day
  month/30 Asia/Kathmandu 2028-02-28T18:15:00Z 2028-02-28T18:15:00Z 2028-03-29T18:15:00Z 2028-04-29T18:15:00Z
months go over the end of the year
  month/15 America/Sao_Paulo 2026-01-10T00:00:00Z 2025-12-15T03:00:00Z 2026-01-15T03:00:00Z 2026-02-15T03:00:00Z
`
  .trim()
  .split(/\n(?! )/)
  .map((written) => {
    const [name = '', row = ''] = written.split('\n  ')
    const [of = '', zone = '', now = '', ...starts] = row.split(' ')
    const [word, anchor = '1'] = of.split('/')
    const unit = periodUnits.find((one) => one === word) ?? expect.fail(`${word} is no unit`)
    return { name, unit, zone, anchor: Number(anchor), now, starts }
  })

test.each(cases)('$name', ({ unit, zone, anchor, now, starts }) => {
  expect(periodBoundaries(unit, zone, anchor, Date.parse(now)).map(utc)).toEqual(starts)
})

describe.each(['Asia/Kathmandu', 'America/Havana', 'Africa/Cairo', 'Australia/Lord_Howe', 'America/St_Johns', 'UTC'])(
  'in %s',
  (zone) => {
    test.each(periodUnits)('every %s follows the one before without gap or overlap', (unit) => {
      const anchor = 31
      const stepMs = 41.3 * hourMs
      const endMs = Date.parse('2011-01-01T00:00:00Z')
      for (let nowMs = Date.parse('2010-01-01T00:00:00Z'); nowMs < endMs; nowMs += stepMs) {
        const [thisStartMs, nextMs, afterNextMs] = periodBoundaries(unit, zone, anchor, nowMs)
        expect(thisStartMs).toBeLessThanOrEqual(nowMs)
        expect(nextMs).toBeGreaterThan(nowMs)
        expect(afterNextMs).toBeGreaterThan(nextMs)
        expect(periodBoundaries(unit, zone, anchor, thisStartMs).slice(0, 2)).toEqual([thisStartMs, nextMs])
        expect(periodBoundaries(unit, zone, anchor, nextMs - 1).slice(0, 2)).toEqual([thisStartMs, nextMs])
        expect(periodBoundaries(unit, zone, anchor, nextMs).slice(0, 2)).toEqual([nextMs, afterNextMs])
      }
    })
  },
)

test('around every change of clocks of Lord Howe, hours follow each other without gap or overlap', () => {
  for (const change of ['2026-04-04T15:00:00Z', '2026-10-03T15:30:00Z']) {
    for (let minutes = -150; minutes <= 150; minutes += 5) {
      const nowMs = Date.parse(change) + minutes * 60_000
      const [thisStartMs, nextMs, afterNextMs] = periodBoundaries('hour', 'Australia/Lord_Howe', 1, nowMs)
      expect(thisStartMs <= nowMs && nowMs < nextMs && nextMs < afterNextMs).toBe(true)
      const following = periodBoundaries('hour', 'Australia/Lord_Howe', 1, nextMs)
      expect(following.slice(0, 2)).toEqual([nextMs, afterNextMs])
    }
  }
})

test('a day is named by its local date, every other period by the UTC seconds of its start', () => {
  const startMs = Date.parse('2026-02-28T18:15:00Z')
  expect(periodStartLabel('day', 'Asia/Kathmandu', startMs)).toBe('2026-03-01')
  expect(periodStartLabel('day', 'America/Sao_Paulo', Date.parse('2018-11-04T03:00:00Z'))).toBe('2018-11-04')
  expect(periodStartLabel('month', 'Asia/Kathmandu', startMs)).toBe(String(startMs / 1_000))
  expect(periodStartLabel('week', 'UTC', startMs)).toBe(String(startMs / 1_000))
})

test('the cache answers as the calendar does, before, in and after the period it remembers', () => {
  const cached = createBoundaryCache()
  const startMs = Date.parse('2026-03-08T05:00:00Z')
  for (const unit of periodUnits) {
    for (const offsetHours of [0, 1, 22.9, 23, 47, 900, -1, 0, 5]) {
      for (const [zone, anchor] of [
        ['America/New_York', 1],
        ['America/New_York', 31],
        ['UTC', 1],
      ] as const) {
        const nowMs = startMs + offsetHours * hourMs
        expect(cached(unit, zone, anchor, nowMs)).toEqual(periodBoundaries(unit, zone, anchor, nowMs))
      }
    }
  }
})
