import { useState } from 'preact/hooks'
import { ask, pathOf } from '../api.ts'
import { html } from '../html.ts'
import { go, hrefOf } from '../place.ts'
import { typed, useSuggestions } from './field.ts'

/** An id of a decision, also within a pasted answer. */
const decisionId = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/i
const addressLike = /^(?:\d{1,3}\.){3}\d{1,3}$|^[0-9a-f:]*:[0-9a-f:]*$/i

/** The subject of a key's id, if anybody asked with it in 30 days. */
async function isKey(id: string): Promise<boolean> {
  const path = pathOf('/v1/dimensions/key_id', { prefix: id, from: 'now-30d' })
  const { items } = await ask<{ items: readonly { value: string }[] }>(path)
  return items.some(({ value }) => value === id)
}

/** Leads to what is searched: a decision, an address, a key or a subject. */
async function find(text: string): Promise<void> {
  const id = decisionId.exec(text)?.[0]
  if (id !== undefined) return go(hrefOf(`/decisions/${id.toLowerCase()}`))
  if (addressLike.test(text)) return go(hrefOf('/decisions', { ip: text }))
  const subject = hrefOf(`/subjects/${encodeURIComponent(text)}`)
  const isOfKey = await isKey(text).catch(() => false)
  go(isOfKey ? hrefOf('/decisions', { key_id: text }) : subject)
}

export function Search() {
  const [text, setText] = useState('')
  const [isUsed, setUsed] = useState(false)
  const subjects = useSuggestions(isUsed ? 'subject' : undefined, text)
  const keys = useSuggestions(isUsed && text !== '' ? 'key_id' : undefined, text)
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.trim() !== '') void find(text.trim()).then(() => setText(''))
  }
  return html`<form role="search" onSubmit=${submit}>
    <input type="search" list="found" aria-label="Find a subject, key, decision or address" placeholder="/ search" value=${text} onFocus=${() => setUsed(true)} onInput=${(event: Event) => setText(typed(event))} />
    <datalist id="found">
      ${subjects.map((one) => html`<option key=${`s ${one}`} value=${one}>subject</option>`)}
      ${keys.map((one) => html`<option key=${`k ${one}`} value=${one}>key</option>`)}
    </datalist>
  </form>`
}
