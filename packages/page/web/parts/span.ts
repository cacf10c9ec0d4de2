import { dateOf } from '@weir/core/format.ts'
import { useEffect, useState } from 'preact/hooks'
import { answeredAt, refresh } from '../api.ts'
import { ago } from '../format.ts'
import { html } from '../html.ts'
import { browserZone, setParams, useLocation, zoneNow } from '../location.ts'
import { Action } from './dialog.ts'
import { Field, typed } from './field.ts'
import { daysAfter, fromTo, monthOf, type Span, shifted, spanOf, spans, untilNow } from './span-range.ts'

const [minuteMs, dayMs] = [60_000, 86_400_000]

/** The minute that it is: what is asked for stays the same within it. */
export const thisMinute = (): number => Math.floor(Date.now() / minuteMs) * minuteMs

export const useSpan = (): Span => spanOf(useLocation().params, zoneNow(), thisMinute())

/** Goes to a span from one time to another, as one drags it on a chart; Back leads out of it. */
export const showSpan = (fromMs: number, toMs: number): void =>
  showTimes(new Date(fromMs).toISOString(), new Date(toMs).toISOString())

/** Spans that somebody has chosen lately, the last one first. */
const recentMax = 5
const recent = (): readonly (readonly [from: string, to: string])[] => JSON.parse(localStorage.getItem('spans') ?? '[]')

function showTimes(from: string, to: string): void {
  const all = [[from, to], ...recent().filter(([one, other]) => one !== from || other !== to)]
  localStorage.setItem('spans', JSON.stringify(all.slice(0, recentMax)))
  setParams(fromTo(from, to), true)
}

/** Says that a list of the chosen span is empty, and leads to the next wider one and the widest: of `most` at most. */
export function NothingHere({ what, mostMs = 365 * dayMs }: { readonly what: string; readonly mostMs?: number }) {
  const { ms } = useSpan()
  const wider = Object.entries(spans).filter(([, one]) => one.ms > ms && one.ms <= mostMs)
  const offered = [...new Set([...wider.slice(0, 1), ...wider.slice(-1)])]
  return html`${what} ${offered.map(([name, { label }]) => html`<button key=${name} onClick=${() => setParams(untilNow(name))}>Show the ${label}</button>`)}`
}

/** Goes to the span before the chosen one, or behind it. */
export function shiftSpan(by: -1 | 1): void {
  const nowMs = Date.now()
  setParams(shifted(spanOf(new URLSearchParams(location.search), zoneNow(), nowMs), by, nowMs))
}

/** The time of a field (`2026-11-27T10:05`) in a zone, as milliseconds since 1970. */
function timeIn(zone: string, text: string): number {
  const asUtc = Date.parse(`${text}Z`)
  // The zone's own clock at that moment, twice: the first guess may lie on the other side of a change of the clocks.
  const guess = asUtc - (clockOf(zone, asUtc) - asUtc)
  return asUtc - (clockOf(zone, guess) - guess)
}
/** What a zone's clock shows, as if it were UTC. */
const clockOf = (zone: string, ms: number): number => Date.parse(`${fieldText(zone, ms)}Z`)
/** A time as such a field has it. */
const fieldText = (zone: string, ms: number): string =>
  new Date(ms).toLocaleString('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' }).replace(' ', 'T')

/** When a zone's clock last showed this time of day. */
export function lastTimeOf(clock: string, zone: string): number {
  const today = timeIn(zone, `${dateOf(Date.now(), zone)}T${clock.padStart(5, '0')}`)
  return today <= Date.now() ? today : timeIn(zone, `${dateOf(Date.now() - dayMs, zone)}T${clock.padStart(5, '0')}`)
}

/** Around the moment that one jumps to. */
const jumpMs = 15 * minuteMs

/** From one time to another, or around a moment. */
function ChosenTimes({ onClose }: { readonly onClose: () => void }) {
  const { zone, range, ms } = useSpan()
  const toMs = range.to === undefined ? Date.now() : Date.parse(range.to)
  const [from, setFrom] = useState(fieldText(zone, toMs - ms))
  const [to, setTo] = useState(fieldText(zone, toMs))
  const [moment, setMoment] = useState('')
  const run = async () => {
    const [first, last] =
      moment === '' ? [timeIn(zone, from), timeIn(zone, to)] : [-jumpMs, jumpMs].map((by) => timeIn(zone, moment) + by)
    showSpan(first ?? 0, last ?? 0)
  }
  const about = html`
    <div class="row">
      <${Field} label="From" type="datetime-local" value=${from} onValue=${setFrom} required />
      <${Field} label="To" type="datetime-local" value=${to} onValue=${setTo} required min=${from} />
    </div>
    <${Field} label="Or jump to" type="datetime-local" value=${moment} onValue=${setMoment} />
    <p class="quiet">Times in ${zone}. Drag on a chart to zoom in; <kbd>[</kbd> and <kbd>]</kbd> move back and forward.</p>`
  return html`<${Action} label="Show" about=${about} run=${run} opened=${onClose} />`
}

/** All zones of the browser, its own first. */
const zones = () => [...new Set([browserZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])]

/** Asks everything again, and says when the last answer came. */
function Refresh() {
  const [, setNow] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const at = answeredAt()
  return html`<button class="bare small refresh" title="Refresh" onClick=${refresh}>↻ <span>${at === undefined ? 'Refresh' : `updated ${ago(at)}`}</span></button>`
}

/** Where the calendar's spans begin and end. */
function calendarSpan(name: string, zone: string): readonly [from: string, to: string] {
  const today = dateOf(Date.now(), zone)
  const monday = daysAfter(today, -((new Date(today).getUTCDay() + 6) % 7))
  const first = monthOf(today, -1)
  return (
    (
      {
        today: [today, daysAfter(today, 1)],
        yesterday: [daysAfter(today, -1), today],
        'this-week': [monday, daysAfter(monday, 7)],
        'last-week': [daysAfter(monday, -7), monday],
      } as const
    )[name] ?? [first, monthOf(first, 1)]
  )
}
const calendarNames = {
  today: 'today',
  yesterday: 'yesterday',
  'this-week': 'this week',
  'last-week': 'last week',
  month: 'this month',
  'last-month': 'last month',
}

export function SpanTools() {
  const { name, label, zone } = useSpan()
  const [isChoosing, setChoosing] = useState(false)
  const lately = recent()
  const choose = (event: Event) => {
    const value = typed(event)
    const [from, to] = lately[Number(value)] ?? calendarSpan(value, zone)
    if (value === 'times') setChoosing(true)
    else if (value === 'month' || Object.hasOwn(spans, value)) setParams(untilNow(value))
    else setParams(fromTo(from, to))
  }
  const texts = lately.map(([from, to]) => spanOf(new URLSearchParams({ from, to }), zone, 0).label)
  return html`
    <${Refresh} />
    <select class="span" aria-label="Span" value=${isChoosing ? 'times' : name} onChange=${choose}>
      ${name === '' && html`<option value="">${label}</option>`}
      ${Object.entries(spans).map(([one, { label: text }]) => html`<option key=${one} value=${one}>${text}</option>`)}
      ${Object.entries(calendarNames).map(([one, text]) => html`<option key=${one} value=${one}>${text}</option>`)}
      <option value="times">from – to…</option>
      ${texts.length > 0 && html`<optgroup label="Recent">${texts.map((text, at) => html`<option key=${text} value=${String(at)}>${text}</option>`)}</optgroup>`}
    </select>
    <select class="zone" aria-label="Time zone" value=${zone} onChange=${(event: Event) => setParams({ zone: typed(event) })}>
      ${[...new Set([...zones(), zone])].map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
    </select>
    ${isChoosing && html`<${ChosenTimes} onClose=${() => setChoosing(false)} />`}
  `
}
