import type { InvoiceSummary } from '@weir/clickhouse/invoice-queries.ts'
import { monthNamed, periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { BilledPeriod, Invoice } from '@weir/core/prices/invoice.ts'
import type { Subject } from '@weir/policy/policy.ts'

/** Returns a time as RFC 3339, UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString()

type Calendar = Pick<Subject, 'timeZone' | 'anchor'>

function monthAfter(month: string, months = 1): string {
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
  last: Pick<InvoiceSummary, 'period' | 'to'> | undefined,
  nowMs: number,
): Period {
  if (last !== undefined) {
    const name = monthAfter(last.period)
    const endMs = monthNamed(name, timeZone, anchor)?.[1] ?? 0
    const fromMs = Date.parse(last.to)
    if (endMs > nowMs && fromMs < endMs) return { fromMs, toMs: endMs }
  }
  const [fromMs, toMs] = periodBoundaries('month', timeZone, anchor, nowMs)
  return { fromMs, toMs }
}

/** Returns a period as invoices keep it. */
export const billed = ({ timeZone, anchor }: Calendar, name: string, { fromMs, toMs }: Period): BilledPeriod => {
  return { name, from: iso(fromMs), to: iso(toMs), time_zone: timeZone, anchor: String(anchor) }
}
