import { monthNamed, periodBoundaries } from '@weir/core/calendar/calendar.ts'

/** Whose months a question is about: zone and first day of one subject. */
export interface MonthCalendar {
  readonly timeZone: string
  readonly anchor: number
}

function spanOf(period: string, { timeZone, anchor }: MonthCalendar, nowMs: number) {
  if (period !== 'current' && period !== 'previous') return monthNamed(period, timeZone, anchor)
  const [startMs, nextMs] = periodBoundaries('month', timeZone, anchor, nowMs)
  if (period === 'current') return [startMs, nextMs] as const
  return [periodBoundaries('month', timeZone, anchor, startMs - 1)[0], startMs] as const
}

/**
 * Reads `period`: a month of one subject, in its zone and from its day on. Undefined without one or where it is wrong.
 * `timeZone` is the subject's, and `previousMs` the start of the month before.
 */
export function readPeriod(
  params: Readonly<Record<string, string | undefined>>,
  { nowMs, calendar }: { readonly nowMs: number; readonly calendar: MonthCalendar | undefined },
  problems: string[],
):
  | { readonly timeZone: string; readonly fromMs: number; readonly toMs: number; readonly previousMs: number }
  | undefined {
  const { period, from, to } = params
  if (period === undefined) return undefined
  if (from !== undefined || to !== undefined) problems.push('period goes without from and to')
  if (calendar === undefined) {
    problems.push('period takes exactly one subject, whose month it is')
    return undefined
  }
  const span = spanOf(period, calendar, nowMs)
  if (span === undefined) {
    problems.push(`period must be like 2026-11, current or previous, but is ${JSON.stringify(period)}`)
    return undefined
  }
  const [fromMs, toMs] = span
  const [previousMs] = periodBoundaries('month', calendar.timeZone, calendar.anchor, fromMs - 1)
  return { timeZone: calendar.timeZone, fromMs, toMs, previousMs }
}
