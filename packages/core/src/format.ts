import { formatNanos } from './prices/amount.ts'

/** How numbers, lengths of time and moments are written for people: on the page, in the command line and in mails. */

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const withTenths = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })

/** A count. Counts beyond 2^53 come as text. */
export function count(value: number | bigint | string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return grouped.format(typeof value === 'string' ? BigInt(value) : value)
}

/** An average of counts: `12.5`. */
export const average = (value: number): string => withTenths.format(value)

/** A decimal amount of money, which the API writes exactly: `2,392.14`. */
export const money = (amount: string): string => amount.replace(/^-?\d+/, (whole) => count(whole))

/** A quantity of a unit: of money, which is in billionths of its currency, as an amount: `1.23 USD`. */
export const quantity = (value: Parameters<typeof count>[0], currency?: string | null): string =>
  currency && value !== null && value !== undefined ? `${money(formatNanos(value))} ${currency}` : count(value)

/** A count with its word: `1 unit`, `5 units`. */
export const counted = (value: number, word: string, words = `${word}s`): string =>
  `${count(value)} ${value === 1 ? word : words}`

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

/** By zone and kind: making one takes longer than a hundred uses of it. A process has some zones and seven kinds. */
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

/** Writes a moment in a zone, or the part of it that the kind names. */
export function written(kind: keyof typeof kinds, zone: string, at: Date | number): string {
  const key = `${kind} ${zone}`
  let found = formatters.get(key)
  if (found === undefined) {
    found = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...kinds[kind] })
    formatters.set(key, found)
  }
  // British English writes *Sept* alone with four letters.
  return found.format(at).replace('Sept', 'Sep')
}

/** The offset of a zone at a moment: `+01:00`, or `UTC`. */
export const offsetOf = (zone: string, at: Date) =>
  written('offset', zone, at)
    .replace(/^.*GMT/, '')
    .replace('+00:00', '')
    .trim() || 'UTC'

/** A moment in a zone: `27 Nov 2026, 11:02:03 UTC`, or `+01:00` in place of UTC. */
export function moment(at: Date | number | string, zone: string): string {
  const date = new Date(at)
  return `${written('date', zone, date)}, ${written('clock', zone, date)} ${offsetOf(zone, date)}`
}

/** The day of a zone as machines write it: `2026-11-27`. */
export function dateOf(ms: number, zone: string): string {
  const all = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  return all.format(ms)
}
