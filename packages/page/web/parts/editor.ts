import { useRef } from 'preact/hooks'
import { type Children, html } from '../html.ts'
import { typed } from './field.ts'

export interface Problem {
  readonly path: string
  readonly message: string
  readonly line?: number
  readonly column?: number
}

/** Lines that are seen at once. */
const rows = 32

/** A longer text is plain: each keystroke colours all of it. */
const colouredMax = 3_000

/** What a line of YAML is made of: a comment, a key, a text in quotes, a number or a word. */
const tokens = /(#.*$)|((?:^|(?<=[\s{,[-]))[\w.*/-]+(?=:(?:\s|$)))|("(?:[^"\\]|\\.)*"|'[^']*')|(\b\d[\d_.]*[a-z%]*\b)/g
const kinds = ['comment', 'key', 'text', 'number'] as const

function coloured(line: string) {
  const parts: Children[] = []
  let end = 0
  for (const found of line.matchAll(tokens)) {
    const kind = kinds.find((_, at) => found[at + 1] !== undefined)
    parts.push(line.slice(end, found.index), html`<i class=${kind}>${found[0]}</i>`)
    end = found.index + found[0].length
  }
  return [...parts, line.slice(end)]
}

/** A text with the numbers of its lines, in colours; lines with a problem are marked. */
export function Editor(props: {
  readonly label: string
  readonly text: string
  readonly onText: (text: string) => void
  readonly problems: readonly Problem[]
  readonly area: { current: HTMLTextAreaElement | null }
}) {
  const { label, text, onText, problems, area } = props
  const [gutter, colours] = [useRef<HTMLPreElement>(null), useRef<HTMLPreElement>(null)]
  const wrong = new Map(problems.map(({ line, message }) => [line, message]))
  const lines = text.split('\n')
  const follow = ({ currentTarget }: Event) => {
    const { scrollTop, scrollLeft } = currentTarget as HTMLElement
    for (const { current } of [gutter, colours])
      current?.scrollTo({ top: scrollTop, left: current === colours.current ? scrollLeft : 0 })
  }
  return html`<div class="editor">
    <pre ref=${gutter} aria-hidden="true">${lines.map((_, at) => html`<span key=${at} class=${wrong.has(at + 1) ? 'taken' : ''}>${wrong.has(at + 1) ? `✕ ${at + 1}` : at + 1}</span>`)}</pre>
    <div class="code">
      <pre ref=${colours} aria-hidden="true">${lines.map(
        (line, at) =>
          html`<span key=${at} class=${wrong.has(at + 1) ? 'wrong' : ''}>${lines.length > colouredMax ? line : coloured(line)}${wrong.has(at + 1) && html`<em>${wrong.get(at + 1)}</em>`}${'\n'}</span>`,
      )}</pre>
      <textarea ref=${area} aria-label=${label} rows=${rows} wrap="off" spellcheck=${false} value=${text} onInput=${(event: Event) => onText(typed(event))} onScroll=${follow}></textarea>
    </div>
  </div>`
}
