import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** What a line is told by, and its colour: what comes, goes, changes, and the head of a table. */
const styles: readonly (readonly [RegExp, Style])[] = [
  [/^(?:- \S|REFUSED )|✕| refused$/, 'red'],
  [/^(?:\+ \S|ALLOWED )|✓/, 'green'],
  [/^~ \S/, 'yellow'],
  [/^(?=.*[A-Z]{2})[A-Z0-9%±/_ ]+$/, 'bold'],
]

/** Breaks prose between words; a table and JSON stay as they are. */
function wrapped(line: string, columns: number): string {
  if (columns === 0 || line.length <= columns || /^[{[]|\S {2,}\S/.test(line)) return line
  const indent = `${/^ */.exec(line)?.[0]}  `
  const lines: string[] = []
  let own = ''
  for (const word of line.split(/(?<=\S) /)) {
    const longer = own === '' ? word : `${own} ${word}`
    if (own !== '' && longer.length > columns) {
      lines.push(own)
      own = `${indent}${word}`
    } else own = longer
  }
  return [...lines, own].join('\n')
}

/** Returns harmless lines as a terminal shows them: wrapped between words, with colours unless NO_COLOR is set. */
export function forScreen(lines: string, stream: Pick<WriteStream, 'isTTY' | 'columns'>): string {
  if (!stream.isTTY) return lines
  return lines
    .split('\n')
    .map((line) => {
      const style = styles.find(([pattern]) => pattern.test(line))?.[1]
      const text = wrapped(line, stream.columns)
      return style === undefined ? text : styleText(style, text, { stream: stream as WriteStream })
    })
    .join('\n')
}
