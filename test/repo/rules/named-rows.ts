import { readMarkdown } from './markdown.ts'
import type { Finding, SourceFile } from './source-file.ts'

/** Something that both the code and a document must name: the name, and cells of its row that the code knows. */
export interface Named {
  readonly name: string
  /** By the number of the cell; the name is cell 0. */
  readonly cells?: Readonly<Record<number, string>>
}

const plain = (cell: string) => cell.replaceAll('`', '')

/** The rows of a document whose first cell is one back-ticked name, in tables of names like these. */
export function namedRows(document: SourceFile, isOne: (name: string) => boolean) {
  return readMarkdown(document)
    .rows.map(({ cells, line }) => ({ name: /^`([^`]+)`$/.exec(cells[0] ?? '')?.[1] ?? '', cells, line }))
    .filter(({ name }) => isOne(name))
}

/**
 * Holds a table to the code, both ways: every name has exactly one row, every row a name, and the known cells agree.
 */
export function compareRows(
  document: SourceFile,
  wanted: readonly Named[],
  isOne: (name: string) => boolean,
): Finding[] {
  const rows = namedRows(document, isOne)
  const at = (line: number, what: string): Finding => ({ path: document.path, line, rule: 'docs', what })
  const known = new Set(wanted.map(({ name }) => name))
  const extra = rows
    .filter(({ name }) => !known.has(name))
    .map(({ name, line }) => at(line, `${name} is not in the code`))
  const missing = wanted.flatMap(({ name, cells = {} }) => {
    const [row, second] = rows.filter((one) => one.name === name)
    if (row === undefined) return [at(0, `${name} has no row`)]
    if (second !== undefined) return [at(second.line, `${name} has a second row`)]
    const differing = Object.entries(cells).filter(([cell, text]) => plain(row.cells[Number(cell)] ?? '') !== text)
    return differing.map(([, text]) => at(row.line, `${name} is "${text}" in the code`))
  })
  return [...extra, ...missing]
}
