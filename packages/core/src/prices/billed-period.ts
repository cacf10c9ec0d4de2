import { monthNamed, monthOf, periodBoundaries } from '../calendar/calendar.ts'
import type { Period } from './forecast.ts'
import type { BilledPeriod, Invoice } from './invoice.ts'

/** Returns a time as RFC 3339, UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString()

interface Calendar {
  readonly timeZone: string
  readonly anchor: number
}

/** A period that is not closed, with the month in which it begins: `2026-11`. */
export interface NamedPeriod extends Period {
  readonly name: string
}

/** The newest invoice of a subject: of the month `period`, from and to an instant in RFC 3339. */
export interface LastInvoice {
  readonly period: string
  readonly from: string
  readonly to: string
}

/** Returns the month that is so many after another: -1 is the one before. */
export function monthAfter(month: string, months = 1): string {
  const [year = 0, number = 0] = month.split('-').map(Number)
  return new Date(Date.UTC(year, number - 1 + months, 1)).toISOString().slice(0, 7)
}

/**
 * Returns the period of a month: it begins where the last one ended, also after a change of zone or anchor. A text says
 * why there is none.
 */
export function periodToClose(
  { timeZone, anchor }: Calendar,
  month: string,
  earlier: readonly Pick<Invoice, 'period'>[],
): Period | string {
  const calendar = monthNamed(month, timeZone, anchor)
  if (calendar === undefined) return `${month} is no month such as 2026-11`
  const later = earlier.find(({ period }) => period.name > month)
  if (later !== undefined) return `the later month ${later.period.name} is closed already`
  const last = earlier.findLast(({ period }) => period.name === monthAfter(month, -1))
  const [fromMs, toMs] = [last === undefined ? calendar[0] : Date.parse(last.period.to), calendar[1]]
  return fromMs < toMs ? { fromMs, toMs } : `the month ended at ${iso(toMs)}, and the one before only at ${iso(fromMs)}`
}

/**
 * Returns the period that runs now, with the bounds that closing it will give it: by the calendar, and from the end of
 * the month before if that is closed. `last` is the newest invoice.
 */
export function runningPeriod(
  { timeZone, anchor }: Calendar,
  last: Pick<LastInvoice, 'period' | 'to'> | undefined,
  nowMs: number,
): NamedPeriod {
  if (last !== undefined) {
    const name = monthAfter(last.period)
    const endMs = monthNamed(name, timeZone, anchor)?.[1] ?? 0
    const fromMs = Date.parse(last.to)
    if (endMs > nowMs && fromMs < endMs) return { name, fromMs, toMs: endMs }
  }
  const [fromMs, toMs] = periodBoundaries('month', timeZone, anchor, nowMs)
  return { name: monthOf(timeZone, fromMs), fromMs, toMs }
}

/** Returns the period before the running one, as it was closed, or with the bounds that closing it will give it. */
export function periodBefore(calendar: Calendar, last: LastInvoice | undefined, running: NamedPeriod): NamedPeriod {
  const { fromMs: toMs } = running
  if (last === undefined || Date.parse(last.to) !== toMs) return runningPeriod(calendar, last, toMs - 1)
  return { name: last.period, fromMs: Date.parse(last.from), toMs }
}

/** Returns a period as invoices keep it. */
export const billed = ({ timeZone, anchor }: Calendar, name: string, { fromMs, toMs }: Period): BilledPeriod => {
  return { name, from: iso(fromMs), to: iso(toMs), time_zone: timeZone, anchor: String(anchor) }
}
