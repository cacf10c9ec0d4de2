import { lineAt, type SourceFile } from './source-file.ts'

/** Something in a document and where it stands. */
export interface Spot {
  readonly text: string
  readonly line: number
}

/** A document taken apart; code blocks are kept out of everything but `codeLines`. */
export interface Markdown {
  readonly path: string
  readonly headings: readonly Spot[]
  /** What stands between single back-ticks. */
  readonly codeSpans: readonly Spot[]
  /** Targets of links. */
  readonly links: readonly Spot[]
  /** Lines of code blocks. */
  readonly codeLines: readonly Spot[]
  /** Table rows, cell by cell, without heads and rules. */
  readonly rows: readonly { readonly cells: readonly string[]; readonly line: number }[]
}

const codeSpan = /`([^`\n]+)`/g

const isRule = (line: string | undefined) => /^\s*\|[\s|:-]+\|\s*$/.test(line ?? '')

const cellsOf = (line: string) =>
  line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

function spotsOf(text: string, pattern: RegExp): Spot[] {
  return [...text.matchAll(pattern)].map((match) => ({ text: match[1] ?? '', line: lineAt(text, match.index) }))
}

export function readMarkdown({ path, text }: SourceFile): Markdown {
  const codeLines: Spot[] = []
  let inCode = false
  const prose = text.split('\n').map((content, at) => {
    const isFence = /^\s*```/.test(content)
    if (inCode && !isFence) codeLines.push({ text: content, line: at + 1 })
    const keep = !inCode && !isFence
    if (isFence) inCode = !inCode
    return keep ? content : ''
  })
  const rows = prose.flatMap((content, at) => {
    const isRow = content.trimStart().startsWith('|') && !isRule(content) && !isRule(prose[at + 1])
    return isRow ? [{ cells: cellsOf(content), line: at + 1 }] : []
  })
  const whole = prose.join('\n')
  return {
    path,
    headings: spotsOf(whole, /^#+ +(.+?) *$/gm),
    codeSpans: spotsOf(whole, codeSpan),
    links: spotsOf(whole.replaceAll(codeSpan, ''), /\]\(([^)\s]+)\)/g),
    codeLines,
    rows,
  }
}
