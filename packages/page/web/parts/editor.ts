import { useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { typed } from './field.ts'

export interface Problem {
  readonly path: string
  readonly message: string
  readonly line?: number
  readonly column?: number
}

/** Lines that are seen at once. */
const rows = 32

/** A text with the numbers of its lines; those with a problem are marked. */
export function Editor(props: {
  readonly label: string
  readonly text: string
  readonly onText: (text: string) => void
  readonly problems: readonly Problem[]
  readonly area: { current: HTMLTextAreaElement | null }
}) {
  const { label, text, onText, problems, area } = props
  const gutter = useRef<HTMLPreElement>(null)
  const wrong = new Set(problems.map(({ line }) => line))
  const numbers = text.split('\n').map((_, at) => (wrong.has(at + 1) ? `✕ ${at + 1}` : String(at + 1)))
  const follow = (event: Event) => {
    if (gutter.current !== null) gutter.current.scrollTop = (event.currentTarget as HTMLElement).scrollTop
  }
  return html`<div class="editor">
    <pre ref=${gutter} aria-hidden="true">${numbers.map((one, at) => html`<span key=${at} class=${one.startsWith('✕') ? 'taken' : ''}>${one}</span>`)}</pre>
    <textarea ref=${area} aria-label=${label} rows=${rows} wrap="off" spellcheck=${false} value=${text} onInput=${(event: Event) => onText(typed(event))} onScroll=${follow}></textarea>
  </div>`
}
