import { useEffect, useState } from 'preact/hooks'
import type { AnswerState, Refusal } from '../api.ts'
import { ago } from '../format.ts'
import { type Children, html } from '../html.ts'

/** From then on a person wants to know. */
const slowS = 4

/** Grey bars of about the size of what is coming; shown only where an answer takes longer than a moment. */
function Waiting({ rows }: { readonly rows: number }) {
  const [isLate, setLate] = useState(false)
  const [seconds, setSeconds] = useState(0)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150)
    const ticking = setInterval(() => setSeconds((one) => one + 1), 1_000)
    return () => {
      clearTimeout(timer)
      clearInterval(ticking)
    }
  }, [])
  return html`<div aria-busy="true">
    ${seconds < slowS ? html`<span class="hidden">Loading</span>` : html`<p class="quiet">Still loading: no answer for ${seconds} s.</p>`}
    ${Array.from({ length: rows }, () => html`<div class=${isLate ? 'bone' : 'bone hidden'} />`)}
  </div>`
}

const wordOf = ({ status, type, body, retryAfterS }: Refusal) => {
  if (type === 'scope-missing') return `Your token lacks the scope ${body.scope}.`
  if (status === 404) return retryAfterS > 0 ? 'Not available yet; retrying.' : 'Not found.'
  if (status === 401) return 'Signed out.'
  return status >= 400 && status < 500 ? 'Refused.' : 'No answer.'
}

const isForGood = ({ type, status, retryAfterS }: Refusal) =>
  type === 'scope-missing' || status === 401 || (status === 404 && retryAfterS === 0)

/** What went wrong, in the API's own words, and what to do. */
export function Fault({ error, again }: { readonly error: Refusal; readonly again?: (() => void) | undefined }) {
  return html`<div class="fault stack" role="alert">
    <div><b>${wordOf(error)}</b> ${error.message}</div>
    ${again !== undefined && !isForGood(error) && html`<div><button onClick=${again}>Try again</button></div>`}
  </div>`
}

/** An answer of the API as the panel's content, in each of its states. */
export interface PanelProps<T> {
  readonly title: string
  readonly asked: AnswerState<T>
  /** The path that was asked, to be copied as a command. */
  readonly path?: string | undefined
  readonly tools?: Children
  readonly rows?: number
  readonly class?: string
  /** Whether there is nothing to show, and what is said then. */
  readonly empty?: (data: T) => Children | undefined
  readonly children: (data: T) => Children
}

export function Panel<T>(props: PanelProps<T>) {
  const { title, asked, path, tools, rows = 4, empty, children } = props
  const { data, error, atMs, again } = asked
  const isStale = data !== undefined && error !== undefined
  const content = () => {
    if (data === undefined) return error === undefined ? html`<${Waiting} rows=${rows} />` : null
    const nothing = empty?.(data)
    return nothing === undefined ? children(data) : html`<div class="empty">${nothing}</div>`
  }
  return html`<section class=${`panel ${props.class ?? ''} ${isStale ? 'stale' : ''}`} aria-label=${title}>
    <header>
      <h2>${title}</h2>
      <div class="row">${path !== undefined && html`<${CopyCommand} path=${path} />`}${tools}</div>
    </header>
    <div class="stack">
      ${error !== undefined && html`<${Fault} error=${error} again=${again} />`}
      ${isStale && atMs !== undefined && html`<p class="quiet small">as of ${ago(atMs)}</p>`}
      <div class="body">${content()}</div>
    </div>
  </section>`
}

/** Copies a text, and says so for a moment. */
export function Copy(props: {
  readonly text: string
  readonly label: string
  readonly title?: string
  readonly kind?: string
}) {
  const { text, label, title = label, kind = 'bare small' } = props
  const [said, setSaid] = useState('')
  const say = (words: string) => {
    setSaid(words)
    setTimeout(() => setSaid(''), 1_500)
  }
  // A browser may forbid it.
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => say('Copied'),
      () => say('Not copied'),
    )
  return html`<button type="button" class=${kind} title=${title} onClick=${copy}>${said === '' ? label : said}</button>`
}

/** Copies a question as a command. */
export const CopyCommand = ({ path }: { readonly path: string }) =>
  html`<${Copy}
    text=${`curl -H "Authorization: Bearer $TOKEN" '${location.origin}${path}'`}
    label="as curl"
    kind="bare small as-curl"
    title="Copy this request as a command"
  />`
