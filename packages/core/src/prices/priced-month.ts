import { monthOf, periodBoundaries } from '../calendar/calendar.ts'
import type { Period } from './forecast.ts'

/** Returns a time as RFC 3339, UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** A month of a subject's own calendar, with the one in which it begins: `2026-11`. */
export interface PricedMonth extends Period {
  readonly name: string
}

/** Returns the month of a subject's own calendar that a time is in. */
export function monthAt(
  { timeZone, anchor }: { readonly timeZone: string; readonly anchor: number },
  atMs: number,
): PricedMonth {
  const [fromMs, toMs] = periodBoundaries('month', timeZone, anchor, atMs)
  return { name: monthOf(timeZone, fromMs), fromMs, toMs }
}
