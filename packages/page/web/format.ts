/** How numbers, times and spans are written, everywhere alike. */

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** A count. Counts beyond 2^53 come as text. */
export function count(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return grouped.format(typeof value === 'string' ? BigInt(value) : value)
}

/** A count for axes and tight places: 12.3k. */
export function short(value: number): string {
  return new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 }).format(value)
}

/** A change as +12 %; `new` from nothing. */
export function change(value: number | null | undefined): string {
  if (value === undefined) return ''
  if (value === null) return 'new'
  const percent = Math.round(value * 100)
  return `${percent > 0 ? '+' : percent < 0 ? '−' : ''}${Math.abs(percent)} %`
}

export const percent = (part: number, of: number): string => (of === 0 ? '–' : `${Math.round((100 * part) / of)} %`)

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** A length of time in its largest unit: 3 min, 19.9 s. */
export function length(ms: number): string {
  const [name, unit] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['ms', 1]
  const value = ms / unit
  return `${Math.abs(value) < 100 && unit <= 1_000 && unit > 1 ? Math.round(value * 10) / 10 : Math.round(value)} ${name}`
}

/** How long ago, or in how long. */
export function ago(ms: number, nowMs: number = Date.now()): string {
  const passed = nowMs - ms
  if (Math.abs(passed) < 1_000) return 'now'
  return passed > 0 ? `${length(passed)} ago` : `in ${length(-passed)}`
}

const parts = (zone: string, more: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...more })

/** A time of day, with the date unless it is today's. */
export function time(text: string | number, zone: string, nowMs: number = Date.now()): string {
  const at = new Date(text)
  const day = parts(zone, { day: 'numeric', month: 'short', year: 'numeric' })
  const clock = parts(zone, { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(at)
  return day.format(at) === day.format(nowMs) ? clock : `${day.format(at)}, ${clock}`
}

/** A time with its zone's offset, as a decision's page shows it. */
export function longTime(text: string | number, zone: string): string {
  const at = new Date(text)
  const all = parts(zone, {
    ...{ day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' },
    ...{ fractionalSecondDigits: 3, timeZoneName: 'longOffset' },
  })
  return all.format(at).replace('GMT', '').replace(/ $/, ' UTC')
}

/** The label of a step of a chart. */
export function stepLabel(text: string, step: string, zone: string): string {
  const more: Intl.DateTimeFormatOptions =
    step === 'month'
      ? { month: 'short', year: 'numeric' }
      : step === 'day' || step === 'week'
        ? { day: 'numeric', month: 'short' }
        : { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }
  return parts(zone, more).format(new Date(text))
}
