import { useEffect, useId, useState } from 'preact/hooks'
import { ask, pathOf } from '../api.ts'
import { html } from '../html.ts'

/** The value that somebody typed into a field. */
export const typed = (event: Event): string => (event.currentTarget as HTMLInputElement).value

/** How long somebody has stopped typing before the API is asked. */
const restMs = 200
const suggestionsMax = 12

/** Values of a column of usage that begin so, the most frequent first. */
export function useSuggestions(dimension: string | undefined, prefix: string): readonly string[] {
  const [found, setFound] = useState<readonly string[]>([])
  useEffect(() => {
    if (dimension === undefined) return
    const over = new AbortController()
    const timer = setTimeout(() => {
      ask<{ items: readonly { value: string }[] }>(
        pathOf(`/v1/dimensions/${dimension}`, { prefix, from: 'now-30d' }),
        over.signal,
      ).then(
        ({ items }) => {
          const values = items.map(({ value }) => value).filter((one) => one !== '' && one !== prefix)
          setFound(values.slice(0, suggestionsMax))
        },
        // Without suggestions one types the whole.
        () => setFound([]),
      )
    }, restMs)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [dimension, prefix])
  return found
}

export interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  /** `change`: once it is typed; `input`: with every key. */
  readonly on?: 'input' | 'change'
  /** Values to choose from, with what they are called: a list instead of a line. */
  readonly options?: Readonly<Record<string, string>>
  /** The column of usage whose values are suggested. */
  readonly suggest?: string
  /** In a row of tools the label is the placeholder. */
  readonly isTool?: boolean
  readonly [attribute: string]: unknown
}

/** The one field of all forms and tools. */
export function Field(props: FieldProps) {
  const { label, value, onValue, on = 'input', options, suggest, isTool = false, ...more } = props
  const id = useId()
  const [isUsed, setUsed] = useState(false)
  // What is being typed and not told yet; told with every key it is the value itself, which then cannot lag behind.
  const [untold, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const text = on === 'input' ? value : untold
  const suggestions = useSuggestions(isUsed ? suggest : undefined, text)
  const input = (event: Event) => {
    setText(typed(event))
    if (on === 'input') onValue(typed(event))
  }
  const change = (event: Event) => on === 'change' && onValue(typed(event).trim())
  const named = isTool ? { 'aria-label': label } : {}
  const field =
    options === undefined
      ? html`<input ...${named} placeholder=${isTool ? label.toLowerCase() : undefined} list=${suggest === undefined ? undefined : id} value=${text} onFocus=${() => setUsed(true)} onInput=${input} onChange=${change} ...${more} />
          ${suggest !== undefined && html`<datalist id=${id}>${suggestions.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}`
      : html`<select ...${named} value=${value} onChange=${(event: Event) => onValue(typed(event))} ...${more}>
          ${Object.entries(options).map(([one, name]) => html`<option key=${one} value=${one}>${name}</option>`)}
        </select>`
  return isTool ? field : html`<label class="field">${label}${field}</label>`
}
