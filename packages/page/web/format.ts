/** How numbers, times and spans are written, everywhere alike. */

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** A count. Counts beyond 2^53 come as text. */
export function count(value: number | bigint | string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return grouped.format(typeof value === 'string' ? BigInt(value) : value)
}

/** A decimal amount of money, which the API writes exactly: `2,392.14`. */
export const money = (amount: string): string => amount.replace(/^-?\d+/, (whole) => count(whole))

/** A count with its word: `1 unit`, `5 units`. */
export const counted = (value: number, word: string, words = `${word}s`): string =>
  `${count(value)} ${value === 1 ? word : words}`

/** A count for axes and tight places: 12.3k. */
export const short = (value: number): string => compact.format(value).replace('K', 'k')

/** A change as +12%; `new` from nothing. */
export function change(value: number | null | undefined): string {
  if (value === undefined) return ''
  if (value === null) return 'new'
  const percents = Math.round(value * 100)
  return `${percents > 0 ? '+' : percents < 0 ? '−' : '±'}${count(Math.abs(percents))}%`
}

/** A part of a whole; what is not nothing is never written as 0%. */
export function percent(part: number, of: number): string {
  if (of === 0) return '–'
  const value = (100 * part) / of
  return value > 0 && value < 1 ? '< 1%' : `${Math.round(value)}%`
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/** A length of time, as exact as one reads it: 19.9 s, 1 h 30 min, 59 min. */
export function length(ms: number): string {
  const at = units.findIndex(([, size]) => Math.abs(ms) >= size)
  const [name, unit] = units[at] ?? ['ms', 1]
  const value = Math.abs(ms) / unit
  if (unit <= 1_000) return `${unit > 1 && value < 100 ? Math.round(value * 10) / 10 : Math.round(value)} ${name}`
  const [smaller, part] = units[at + 1] ?? ['ms', 1]
  const rest = Math.floor((Math.abs(ms) % unit) / part)
  return value >= 100 || rest === 0 ? `${Math.floor(value)} ${name}` : `${Math.floor(value)} ${name} ${rest} ${smaller}`
}

/** A wait, never less than it is: the sentences of the API round it in the same way. */
export function wait(ms: number): string {
  const at = units.findIndex(([, size]) => ms >= size)
  const size = ms < 1_000 ? 1 : ms < 60_000 ? 100 : (units[at + 1]?.[1] ?? 1)
  return length(Math.ceil(ms / size) * size)
}

/** How long ago, or in how long. */
export function ago(ms: number, nowMs: number = Date.now()): string {
  const passed = nowMs - ms
  if (Math.abs(passed) < 1_000) return 'now'
  return passed > 0 ? `${length(passed)} ago` : `in ${length(-passed)}`
}

/** By zone and kind: making one takes longer than a hundred uses of it. A page has some zones and seven kinds. */
const formatters = new Map<string, Intl.DateTimeFormat>()
const kinds = {
  clock: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  minute: { hour: '2-digit', minute: '2-digit' },
  day: { day: 'numeric', month: 'short' },
  date: { day: 'numeric', month: 'short', year: 'numeric' },
  month: { month: 'short', year: 'numeric' },
  offset: { timeZoneName: 'longOffset' },
  millisecond: { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>

function written(kind: keyof typeof kinds, zone: string, at: Date | number): string {
  const key = `${kind} ${zone}`
  let found = formatters.get(key)
  if (found === undefined) {
    found = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...kinds[kind] })
    formatters.set(key, found)
  }
  return found.format(at)
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

const offsetOf = (zone: string, at: Date) =>
  written('offset', zone, at)
    .replace(/^.*GMT/, '')
    .replace('+00:00', '')
    .trim() || 'UTC'

/** A time with its zone's offset, as a decision's page shows it. */
export function longTime(text: string | number, zone: string): string {
  const at = new Date(text)
  return `${written('date', zone, at)}, ${written('millisecond', zone, at)} ${offsetOf(zone, at)}`
}

/** A time as the tooltip of a shorter one has it: in its zone with the offset, and in UTC. */
export function fullTime(text: string | number, zone: string): string {
  const at = new Date(text)
  return `${written('date', zone, at)}, ${written('clock', zone, at)} ${offsetOf(zone, at)}; ${at.toISOString()}`
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

/** The day of a zone as the API takes it. */
export function dateOf(ms: number, zone: string): string {
  const all = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  return all.format(ms)
}
