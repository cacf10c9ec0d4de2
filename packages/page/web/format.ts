/** How the page alone writes: relative times, and the labels of charts. */

import { length, moment, offsetOf, written } from '@weir/core/format.ts'

const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

const small = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 2 })

/** A number for axes and tight places: 12.3k, 0.0025. */
export const short = (value: number): string => (Math.abs(value) < 1 ? small : compact).format(value).replace('K', 'k')

/** How long ago, or in how long. */
export function ago(ms: number, nowMs: number = Date.now()): string {
  const passed = nowMs - ms
  if (Math.abs(passed) < 1_000) return 'now'
  return passed > 0 ? `${length(passed)} ago` : `in ${length(-passed)}`
}

/** A time of day: `14:05:09`. */
export const clock = (ms: number, zone: string): string => written('clock', zone, ms)

/** A time of day, with the date unless it is today's. */
export function time(text: string | number, zone: string, nowMs: number = Date.now()): string {
  const at = new Date(text)
  const day = written('date', zone, at)
  const timeOfDay = written('clock', zone, at)
  if (day === written('date', zone, nowMs)) return timeOfDay
  const isThisYear = day.slice(-4) === written('date', zone, nowMs).slice(-4)
  return `${isThisYear ? day.slice(0, -5) : day}, ${timeOfDay}`
}

/** A time with its zone's offset, as a decision's page shows it. */
export function longTime(text: string | number, zone: string): string {
  const at = new Date(text)
  return `${written('date', zone, at)}, ${written('millisecond', zone, at)} ${offsetOf(zone, at)}`
}

/** A time as the tooltip of a shorter one has it: in its zone with the offset, and in UTC. */
export function fullTime(text: string | number, zone: string): string {
  const at = new Date(text)
  return `${moment(at, zone)}; ${at.toISOString()}`
}

const isLongStep = (step: string) => step === 'day' || step === 'week' || step === 'month'

/** The label of a step of a chart. */
export function stepLabel(text: string, step: string, zone: string): string {
  const at = new Date(text)
  if (step === 'month') return written('month', zone, at)
  const day = written('day', zone, at)
  return isLongStep(step) ? day : `${day}, ${written('minute', zone, at)}`
}

/** The text below an axis at a time; `isDay`: ticks are days apart. */
export function tickLabel(ms: number, isDay: boolean, zone: string): string {
  const clock = written('minute', zone, ms)
  return isDay || clock === '00:00' ? written('day', zone, ms) : clock
}
