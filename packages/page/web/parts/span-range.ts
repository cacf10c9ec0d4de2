import { dateOf } from '@weir/core/format.ts'
import { stepLabel } from '../format.ts'

/** Which span an address names, and the calendar's arithmetic. */

const [minuteMs, dayMs] = [60_000, 86_400_000]
const hourMs = 60 * minuteMs

/** The spans that end now, with the step that makes some dozens of bars of each. */
export const spans = {
  '5m': { label: 'last 5 minutes', ms: 5 * minuteMs, step: 'minute' },
  '15m': { label: 'last 15 minutes', ms: 15 * minuteMs, step: 'minute' },
  '1h': { label: 'last hour', ms: hourMs, step: 'minute' },
  '6h': { label: 'last 6 hours', ms: 6 * hourMs, step: 'quarter_hour' },
  '24h': { label: 'last 24 hours', ms: dayMs, step: 'hour' },
  '7d': { label: 'last 7 days', ms: 7 * dayMs, step: 'hour' },
  '30d': { label: 'last 30 days', ms: 30 * dayMs, step: 'day' },
  '90d': { label: 'last 90 days', ms: 90 * dayMs, step: 'day' },
  '365d': { label: 'last year', ms: 365 * dayMs, step: 'week' },
} as const
export type SpanName = keyof typeof spans
const isSpan = (name: string | null): name is SpanName => name !== null && Object.hasOwn(spans, name)

export interface Span {
  /** As it is asked of the API. */
  readonly range: { readonly from: string; readonly to: string | undefined }
  readonly label: string
  readonly ms: number
  readonly step: string
  readonly zone: string
  readonly isWholeMonth: boolean
  /** Empty where somebody has chosen from when to when. */
  readonly name: SpanName | 'month' | ''
}

export const isDate = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text)

/** The same day and time so many months later; the month's last day where it has fewer. */
export function addMonths(text: string, more: number): string {
  const at = new Date(text)
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth() + more, at.getUTCDate()]
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  const moved = Date.UTC(year, month, Math.min(day, last)) + (at.getTime() % dayMs)
  return isDate(text) ? new Date(moved).toISOString().slice(0, 10) : new Date(moved).toISOString()
}
/** The first of the month that is so many months from a date's. */
export const monthOf = (date: string, more: number): string => addMonths(`${date.slice(0, 7)}-01`, more)
const isWholeMonth = (from: string, to: string) => isDate(from) && monthOf(from, 0) === from && monthOf(from, 1) === to
export const daysAfter = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * dayMs).toISOString().slice(0, 10)

/** Days as one says them: `16 – 22 Nov`, `28 Oct – 3 Nov`, `1 Nov`. */
export function daysText(first: string, last: string): string {
  const [begin, end] = [first, last].map((one) => stepLabel(one, 'day', 'UTC'))
  if (first === last) return begin ?? ''
  return first.slice(0, 7) === last.slice(0, 7) ? `${begin?.split(' ')[0]} – ${end}` : `${begin} – ${end}`
}

/** A span in few letters: days as days, `27 Nov, 10:05 – 10:15`. */
function spanText(from: string, to: string, zone: string): string {
  if (isDate(from) && isDate(to)) return daysText(from, daysAfter(to, -1))
  const text = (one: string) => stepLabel(one, isDate(one) ? 'day' : 'minute', isDate(one) ? 'UTC' : zone)
  const isOneDay = dateOf(Date.parse(from), zone) === dateOf(Date.parse(to), zone)
  return `${text(from)} – ${isOneDay ? text(to).replace(/^.*, /, '') : text(to)}`
}

/** The longest span of each step. */
const longestMs = { minute: 3 * hourMs, quarter_hour: dayMs / 2, hour: 8 * dayMs, day: 100 * dayMs }

/** Minutes are there for 35 days. */
function stepOf(ms: number, from: string): string {
  const isRecent = Date.parse(from) > Date.now() - 34 * dayMs
  const found = Object.entries(longestMs).find(([step, most]) => ms <= most && (isRecent || step !== 'minute'))
  return found?.[0] ?? 'week'
}

/** The span and the zone of an address: a link shows the same. */
export function spanOf(params: URLSearchParams, zone: string, nowMs: number): Span {
  const [from, to, name] = [params.get('from'), params.get('to'), params.get('span')]
  if (name === 'month') {
    const first = monthOf(dateOf(nowMs, zone), 0)
    const range = { from: first, to: undefined }
    return { range, label: 'this month', ms: nowMs - Date.parse(first), step: 'day', zone, isWholeMonth: false, name }
  }
  if (from !== null && to !== null && Date.parse(from) < Date.parse(to)) {
    const ms = Date.parse(to) - Date.parse(from)
    const more = { isWholeMonth: isWholeMonth(from, to), name: '' } as const
    return { range: { from, to }, label: spanText(from, to, zone), ms, step: stepOf(ms, from), zone, ...more }
  }
  const known = isSpan(name) ? name : '24h'
  const range = { from: `now-${known}`, to: undefined }
  return { range, ...spans[known], zone, isWholeMonth: false, name: known }
}

/** Changes of an address's parameters. */
type Changes = Readonly<Record<string, string | undefined>>

/** To one of the spans that end now. */
export const untilNow = (span: string): Changes => ({ span, from: undefined, to: undefined, after: undefined })
/** To a span from one time, or day, to another. */
export const fromTo = (from: string, to: string): Changes => ({ from, to, span: undefined, after: undefined })

/** To the span before one, or behind it; behind the last is the one that ends now. */
export function shifted({ name, range, ms, zone }: Span, by: -1 | 1, nowMs: number): Changes {
  const from = name === 'month' || range.to !== undefined ? range.from : new Date(nowMs - ms).toISOString()
  const to = name === 'month' ? monthOf(from, 1) : (range.to ?? new Date(nowMs).toISOString())
  if (by > 0 && Date.parse(to) >= nowMs) return {}
  if (isWholeMonth(from, to)) {
    const first = monthOf(from, by)
    const isThis = first === monthOf(dateOf(nowMs, zone), 0)
    return isThis ? untilNow('month') : fromTo(first, monthOf(from, by + 1))
  }
  if (isDate(from) && isDate(to)) {
    const days = Math.round(ms / dayMs) * by
    return fromTo(daysAfter(from, days), daysAfter(to, days))
  }
  const endMs = Date.parse(to) + by * ms
  const same = Object.entries(spans).find(([, one]) => one.ms === ms)?.[0]
  if (by > 0 && endMs >= nowMs - ms / 10 && same !== undefined) return untilNow(same)
  return fromTo(new Date(Date.parse(from) + by * ms).toISOString(), new Date(endMs).toISOString())
}
