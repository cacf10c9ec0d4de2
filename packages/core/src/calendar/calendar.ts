import { Temporal } from 'temporal-polyfill'
import { type PeriodBoundaries, type PeriodUnit, periodUnits } from '../limits/limit.ts'

const hourMs = 3_600_000
const minuteMs = 60_000
/** Periods looked at around now: two more than asked for, since a zone may skip a day whole or repeat a midnight. */
const periodsMax = 5

/**
 * Where the calendar period that holds `nowMs` begins and where the next two do, in the law of the zone.
 *
 * - A day begins at its first instant: at 01:00 where clocks skip midnight; it lasts 23 or 25 hours where they change.
 *   A day that the zone skips does not exist; once a day has begun, clocks put back past midnight do not end it.
 * - A week begins on Monday, a month on day `anchor` (1 to 31) or the month's last day if that comes first.
 * - An hour begins when the local clock shows a full one; an hour that occurs twice is two periods.
 *
 * `timeZone` has been checked by the policy. Takes 30 to 60 µs: keep the answer while `thisStartMs <= now < nextMs`.
 */
export function periodBoundaries(unit: PeriodUnit, timeZone: string, anchor: number, nowMs: number): PeriodBoundaries {
  if (unit === 'minute') {
    const start = Math.floor(nowMs / minuteMs) * minuteMs
    return [start, start + minuteMs, start + 2 * minuteMs]
  }
  if (unit === 'hour') return hourBoundaries(timeZone, nowMs)
  return dateBoundaries(unit, timeZone, anchor, nowMs)
}

/**
 * Where the month that begins in a month of the calendar (`2026-11`) begins and ends, by the rules of
 * `periodBoundaries`. Undefined for a text that names no month.
 */
export function monthNamed(name: string, timeZone: string, anchor: number): readonly [number, number] | undefined {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(name) ?? []
  if (year === undefined || month === undefined) return undefined
  const first = anchored(Temporal.PlainDate.from({ year: Number(year), month: Number(month), day: 1 }), anchor)
  const startOf = (index: number) => nthDate('month', anchor, first, index).toZonedDateTime(timeZone).epochMilliseconds
  return [startOf(0), startOf(1)]
}

/** The month of the calendar in which an instant is, as `monthNamed` takes it. */
export const monthOf = (timeZone: string, ms: number): string =>
  zoned(timeZone, ms).toPlainDate().toString().slice(0, 7)

/** How a period is named in an alert's claim: days by their local date, others by the UTC seconds of their start. */
export const periodStartLabel = (unit: PeriodUnit, timeZone: string, startMs: number): string =>
  unit === 'day' ? zoned(timeZone, startMs).toPlainDate().toString() : String(Math.floor(startMs / 1_000))

function dateBoundaries(
  unit: 'day' | 'week' | 'month',
  timeZone: string,
  anchor: number,
  nowMs: number,
): PeriodBoundaries {
  const first = firstDate(unit, anchor, zoned(timeZone, nowMs).toPlainDate())
  const starts: number[] = []
  for (let index = 0; index < periodsMax; index += 1) {
    const startMs = nthDate(unit, anchor, first, index).toZonedDateTime(timeZone).epochMilliseconds
    // What has begun by now replaces what was begun before; a skipped day begins with the one after it, and is not
    // counted.
    if (startMs <= nowMs) starts[0] = startMs
    else if (startMs > (starts.at(-1) ?? 0)) starts.push(startMs)
    const [thisStartMs, nextMs, afterNextMs] = starts
    if (thisStartMs !== undefined && nextMs !== undefined && afterNextMs !== undefined) {
      return [thisStartMs, nextMs, afterNextMs]
    }
  }
  throw new RangeError(`no ${unit} around ${nowMs} in ${timeZone}`)
}

/** The date on which the period that holds `date` begins. */
function firstDate(unit: 'day' | 'week' | 'month', anchor: number, date: Temporal.PlainDate): Temporal.PlainDate {
  if (unit === 'day') return date
  if (unit === 'week') return date.subtract({ days: date.dayOfWeek - 1 })
  const inThisMonth = anchored(date, anchor)
  const hasBegun = Temporal.PlainDate.compare(inThisMonth, date) <= 0
  return hasBegun ? inThisMonth : anchored(date.subtract({ months: 1 }), anchor)
}

function nthDate(unit: 'day' | 'week' | 'month', anchor: number, first: Temporal.PlainDate, index: number) {
  if (unit === 'day') return first.add({ days: index })
  if (unit === 'week') return first.add({ days: 7 * index })
  return anchored(first.add({ months: index }), anchor)
}

const anchored = (date: Temporal.PlainDate, anchor: number) => date.with({ day: Math.min(anchor, date.daysInMonth) })

/** Full hours of the local clock, and the change of clocks itself where it moves them by half an hour (Lord Howe). */
function hourBoundaries(timeZone: string, nowMs: number): PeriodBoundaries {
  const offsetMs = offsetAt(timeZone, nowMs)
  const fullHourMs = Math.floor((nowMs + offsetMs) / hourMs) * hourMs - offsetMs
  const moved = (offsetAt(timeZone, fullHourMs) - offsetMs) % hourMs !== 0
  const changeMs = moved ? zoned(timeZone, nowMs + 1).getTimeZoneTransition('previous')?.epochMilliseconds : undefined
  const nextMs = nextHour(timeZone, fullHourMs, nowMs)
  return [changeMs ?? fullHourMs, nextMs, nextHour(timeZone, nextMs, nextMs)]
}

/** One hour after `fullHourMs`, or the next full hour of the clock in force at `atMs` where that comes sooner. */
function nextHour(timeZone: string, fullHourMs: number, atMs: number): number {
  const offsetMs = offsetAt(timeZone, atMs)
  return Math.min(fullHourMs + hourMs, Math.floor((atMs + offsetMs) / hourMs + 1) * hourMs - offsetMs)
}

const zoned = (timeZone: string, ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
const offsetAt = (timeZone: string, ms: number) => zoned(timeZone, ms).offsetNanoseconds / 1_000_000

/** Time zones remembered; there are about 600, and a policy names fewer. Beyond, the cache starts again. */
const zonesMax = 1_000
const anchorsMax = 32

/**
 * `periodBoundaries` for the hot path: computed once per unit, zone and anchor and period, then looked up. A clock that
 * steps back is answered right, only slower.
 */
export function createBoundaryCache(): typeof periodBoundaries {
  const zones = new Map<string, (PeriodBoundaries | undefined)[]>()
  return function cachedPeriodBoundaries(unit: PeriodUnit, timeZone: string, anchor: number, nowMs: number) {
    let known = zones.get(timeZone)
    if (known === undefined) {
      if (zones.size >= zonesMax) zones.clear()
      known = new Array(periodUnits.length * anchorsMax).fill(undefined)
      zones.set(timeZone, known)
    }
    const slot = periodUnits.indexOf(unit) * anchorsMax + anchor
    const last = known[slot]
    if (last !== undefined && last[0] <= nowMs && nowMs < last[1]) return last
    const boundaries = periodBoundaries(unit, timeZone, anchor, nowMs)
    known[slot] = boundaries
    return boundaries
  }
}
