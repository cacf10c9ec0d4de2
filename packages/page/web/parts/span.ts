import { useState } from 'preact/hooks'
import { dateOf, stepLabel } from '../format.ts'
import { html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { Action } from './dialog.ts'
import { Field, typed } from './field.ts'

const [minuteMs, dayMs] = [60_000, 86_400_000]

/** The spans that the frame offers, with the step that makes some dozens of points of each. */
const spans = {
  '1h': { label: '1 hour', ms: 60 * minuteMs, step: 'minute' },
  '24h': { label: '24 hours', ms: dayMs, step: 'hour' },
  '7d': { label: '7 days', ms: 7 * dayMs, step: 'hour' },
  '30d': { label: '30 days', ms: 30 * dayMs, step: 'day' },
  '365d': { label: '1 year', ms: 365 * dayMs, step: 'week' },
} as const
type SpanName = keyof typeof spans
const isSpan = (name: string | null): name is SpanName => name !== null && Object.hasOwn(spans, name)

export interface Span {
  /** As it is asked of the API. */
  readonly range: { readonly from: string; readonly to: string | undefined }
  readonly label: string
  readonly ms: number
  readonly step: string
  readonly zone: string
  /** Empty where somebody has chosen the days, or has gone to a span before. */
  readonly name: SpanName | 'month' | ''
}

const isDate = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text)
/** The first of the month that is so many months from a date's. */
const monthOf = (date: string, more: number) => {
  const [year = 0, month = 1] = date.split('-').map(Number)
  return new Date(Date.UTC(year, month - 1 + more, 1)).toISOString().slice(0, 10)
}
const isWholeMonth = (from: string, to: string) => monthOf(from, 0) === from && monthOf(from, 1) === to
const daysAfter = (date: string, days: number) => new Date(Date.parse(date) + days * dayMs).toISOString().slice(0, 10)

/** Days from one to another, in few letters: `16 – 22 Nov`. */
function daysText(first: string, last: string): string {
  const [begin, end] = [first, last].map((one) => stepLabel(one, 'day', 'UTC'))
  if (first === last) return begin ?? ''
  return first.slice(0, 7) === last.slice(0, 7) ? `${begin?.split(' ')[0]} – ${end}` : `${begin} – ${end}`
}

/** The longest span of each step. */
const longestMs = { minute: 180 * minuteMs, quarter_hour: dayMs / 2, hour: 8 * dayMs, day: 100 * dayMs }

/** Minutes are there for 35 days. */
function stepOf(ms: number, from: string): string {
  const isRecent = Date.parse(from) > Date.now() - 34 * dayMs
  const found = Object.entries(longestMs).find(([step, most]) => ms <= most && (isRecent || step !== 'minute'))
  return found?.[0] ?? 'week'
}

/** The span and the zone of an address: a link shows the same. */
function spanOf(params: URLSearchParams, nowMs: number): Span {
  const zone = params.get('zone') ?? 'UTC'
  const [from, to, name] = [params.get('from'), params.get('to'), params.get('span')]
  if (name === 'month') {
    const first = monthOf(dateOf(nowMs, zone), 0)
    return { range: { from: first, to: undefined }, label: 'this month', ms: 30 * dayMs, step: 'day', zone, name }
  }
  if (from !== null && to !== null && Date.parse(from) < Date.parse(to)) {
    const ms = Date.parse(to) - Date.parse(from)
    const step = stepOf(ms, from)
    const text = (one: string) => stepLabel(one, isDate(one) ? 'day' : 'hour', isDate(one) ? 'UTC' : zone)
    const label = isDate(from) && isDate(to) ? daysText(from, daysAfter(to, -1)) : `${text(from)} – ${text(to)}`
    return { range: { from, to }, label, ms, step, zone, name: '' }
  }
  const known = isSpan(name) ? name : '24h'
  return { range: { from: `now-${known}`, to: undefined }, ...spans[known], zone, name: known }
}

export function useSpan(): Span {
  const { params } = useLocation()
  return spanOf(params, Date.now())
}

const untilNow = (span: string) => ({ span, from: undefined, to: undefined, after: undefined })
/** Goes to one of the spans that end now. */
const chooseSpan = (span: string) => setParams(untilNow(span))

/** Says that a list of the chosen span is empty, and leads to the next wider one and the widest: of `most` at most. */
export function NothingHere({ what, mostMs = 365 * dayMs }: { readonly what: string; readonly mostMs?: number }) {
  const { ms } = useSpan()
  const wider = Object.entries(spans).filter(([, one]) => one.ms > ms && one.ms <= mostMs)
  const offered = [...new Set([...wider.slice(0, 1), ...wider.slice(-1)])]
  return html`${what} ${offered.map(([name, { label }]) => html`<button key=${name} onClick=${() => chooseSpan(name)}>Look at ${label}</button>`)}`
}

const ofDays = (from: string, to: string) => ({ from, to, span: undefined, after: undefined })

/** The span of the same length before this one, as it is asked of the API. */
export function rangeBefore({ range: { from, to }, ms, name }: Span): Span['range'] {
  if (name === 'month') return { from: monthOf(from, -1), to: from }
  if (to === undefined) return { from: `now-${Number.parseInt(from.slice(4), 10) * 2}${from.slice(-1)}`, to: from }
  if (isDate(from) && isWholeMonth(from, to)) return { from: monthOf(from, -1), to: from }
  if (isDate(from)) return { from: daysAfter(from, -Math.round(ms / dayMs)), to: from }
  return { from: new Date(Date.parse(from) - ms).toISOString(), to: from }
}

/** The parameters of the span before one, or behind it; behind the last is the one that ends now. */
function shifted({ name, range, ms, zone }: Span, by: -1 | 1, nowMs: number) {
  const from = name === 'month' || range.to !== undefined ? range.from : new Date(nowMs - ms).toISOString()
  const to = name === 'month' ? monthOf(from, 1) : (range.to ?? new Date(nowMs).toISOString())
  if (by > 0 && Date.parse(to) >= nowMs) return {}
  if (isDate(from) && isWholeMonth(from, to)) {
    const first = monthOf(from, by)
    const isThis = first === monthOf(dateOf(nowMs, zone), 0)
    return isThis ? untilNow('month') : ofDays(first, monthOf(from, by + 1))
  }
  if (isDate(from) && isDate(to)) {
    const days = Math.round(ms / dayMs) * by
    return ofDays(daysAfter(from, days), daysAfter(to, days))
  }
  const endMs = Date.parse(to) + by * ms
  const same = Object.entries(spans).find(([, one]) => one.ms === ms)?.[0]
  if (by > 0 && endMs >= nowMs - ms / 10 && same !== undefined) return untilNow(same)
  return ofDays(new Date(Date.parse(from) + by * ms).toISOString(), new Date(endMs).toISOString())
}

/** Goes to the span before the chosen one, or behind it. */
export function shiftSpan(by: -1 | 1): void {
  const nowMs = Date.now()
  setParams(shifted(spanOf(new URLSearchParams(location.search), nowMs), by, nowMs))
}

function ChosenDays({ onClose }: { readonly onClose: () => void }) {
  const { zone } = useSpan()
  const today = dateOf(Date.now(), zone)
  const [from, setFrom] = useState(daysAfter(today, -6))
  const [last, setLast] = useState(today)
  const run = async () => setParams(ofDays(from, daysAfter(last, 1)))
  const about = html`
    <p>Days begin in ${zone}. The keys <kbd>[</kbd> and <kbd>]</kbd> go to the days before and behind.</p>
    <div class="row">
      <${Field} label="First day" type="date" value=${from} onValue=${setFrom} required />
      <${Field} label="Last day" type="date" value=${last} onValue=${setLast} required min=${from} />
    </div>`
  return html`<${Action} label="Show these days" about=${about} run=${run} opened=${onClose} />`
}

/** All zones of the browser, with those first that are most likely wanted. */
const zones = () => {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone
  return [...new Set(['UTC', own, ...Intl.supportedValuesOf('timeZone')])]
}

export function SpanTools() {
  const { name, label, zone } = useSpan()
  const [isChoosing, setChoosing] = useState(false)
  const choose = (event: Event) => {
    const value = typed(event)
    if (value === 'days') setChoosing(true)
    else if (value === 'last-month') {
      const first = monthOf(dateOf(Date.now(), zone), -1)
      setParams(ofDays(first, monthOf(first, 1)))
    } else if (value === 'last-week') {
      const today = dateOf(Date.now(), zone)
      const monday = daysAfter(today, -((new Date(today).getUTCDay() + 6) % 7))
      setParams(ofDays(daysAfter(monday, -7), monday))
    } else chooseSpan(value)
  }
  return html`
    <select class="span" aria-label="Span" value=${isChoosing ? 'days' : name} onChange=${choose}>
      ${Object.entries(spans).map(([one, { label: text }]) => html`<option key=${one} value=${one}>${text}</option>`)}
      <option value="last-week">last week</option>
      <option value="month">this month</option>
      <option value="last-month">last month</option>
      <option value="days">other days…</option>
      ${name === '' && html`<option value="">${label}</option>`}
    </select>
    <select class="zone" aria-label="Time zone" value=${zone} onChange=${(event: Event) => setParams({ zone: typed(event) })}>
      ${[...new Set([...zones(), zone])].map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
    </select>
    ${isChoosing && html`<${ChosenDays} onClose=${() => setChoosing(false)} />`}
  `
}
