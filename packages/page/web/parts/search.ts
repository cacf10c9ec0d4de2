import { useState } from 'preact/hooks'
import { html } from '../html.ts'
import { go, hrefOf, zoneNow } from '../location.ts'
import { may } from '../session.ts'
import { typed, useSuggestions } from './field.ts'
import { lastTimeOf } from './span.ts'

/** An id of a decision, also within a pasted answer. */
const decisionId = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/i
const addressLike = /^(?:\d{1,3}\.){3}\d{1,3}$|^[0-9a-f:]*:[0-9a-f:]*$/i

/** A decision is found some seconds after it was made; its own page waits for it. */
const freshMs = 60_000
const isFresh = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) > Date.now() - freshMs

/** A subject and a time of day: `acme 10:05`. */
const subjectAtTime = /^(.+?)\s+((?:[01]?\d|2[0-3]):[0-5]\d)$/
const minuteMs = 60_000

/** The decisions of a subject in the minute when the clock last showed this, and in those beside it. */
function decisionsAt(subject: string, clock: string): string {
  const ms = lastTimeOf(clock, zoneNow())
  const iso = (at: number) => new Date(at).toISOString()
  const span = { from: iso(ms - minuteMs), to: iso(ms + 2 * minuteMs) }
  return hrefOf(`/subjects/${encodeURIComponent(subject)}`, { tab: 'decisions', ...span })
}

/** Leads to what is searched. */
function find(text: string): void {
  const id = decisionId.exec(text)?.[0]
  const [, subject, clock] = subjectAtTime.exec(text) ?? []
  if (subject !== undefined && clock !== undefined) go(decisionsAt(subject, clock))
  else if (id !== undefined && (id.length < text.length || isFresh(id) || !may('read')))
    go(hrefOf(`/decisions/${id.toLowerCase()}`))
  else if (addressLike.test(text)) go(hrefOf('/decisions', { ip: text }))
  else go(may('read') ? hrefOf('/search', { q: text }) : hrefOf(`/subjects/${encodeURIComponent(text)}`))
}

export function Search() {
  const [text, setText] = useState('')
  const [isUsed, setUsed] = useState(false)
  const subjects = useSuggestions(isUsed ? 'subject' : undefined, text)
  const keys = useSuggestions(isUsed && text !== '' ? 'key_id' : undefined, text)
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.trim() === '') return
    find(text.trim())
    setText('')
  }
  return html`<form role="search" onSubmit=${submit}>
    <input type="search" list="found" aria-label="Find a subject, key, endpoint, id or address" placeholder="/ search" value=${text} onFocus=${() => setUsed(true)} onInput=${(event: Event) => setText(typed(event))} />
    <datalist id="found">
      ${subjects.map((one) => html`<option key=${`s ${one}`} value=${one}>subject</option>`)}
      ${keys.map((one) => html`<option key=${`k ${one}`} value=${one}>key</option>`)}
    </datalist>
  </form>`
}
