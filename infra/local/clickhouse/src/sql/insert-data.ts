import { notImplemented, serverException } from '../engine/exception.ts'
import { isWord, sqlString, type Token, tokens } from './tokens.ts'

/** Of one connection while it runs one INSERT. */
const inputTable = '_input'

/** An INSERT whose rows follow its text. Offsets are into the text. */
export interface InsertData {
  readonly format: string
  /** Where the clause that names the source of the rows belongs. */
  readonly sourceAt: number
  /** Where `SETTINGS …` ends and the format is named: `FORMAT x` or `VALUES`. */
  readonly formatAt: number
  readonly dataAt: number
  /** The call of `input('structure')` that reads the rows, from its name to its bracket's content. */
  readonly input: { readonly start: number; readonly end: number } | undefined
}

/** After `FORMAT x` the data begins behind blanks, one optional semicolon's rest, and at most one line break. */
function afterFormat(sql: string, end: number): number {
  const gap = /[ \t\f]*(?:;[ \t\f]*)?\r?\n?/y
  gap.lastIndex = end
  return end + (gap.exec(sql)?.[0].length ?? 0)
}

/** An INSERT that ended without data: its rows come from its SELECT. */
function endOfInsert(rest: Iterator<Token>, wantsData: boolean): { kind: 'select' } {
  if (!rest.next().done) throw serverException(62, 'Syntax error (Multi-statements are not allowed)')
  if (wantsData) throw serverException(62, 'Syntax error: input() needs FORMAT and data behind it')
  return { kind: 'select' }
}

/**
 * Reads on behind the word INSERT up to the data, or up to the SELECT that gives the rows. The table's name comes
 * first, so that a table may be called `values`.
 */
export function readInsert(
  sql: string,
  rest: Iterator<Token>,
): { kind: 'data'; data: InsertData } | { kind: 'select' } {
  let depth = 0
  let before: Token | undefined
  let settingsAt: number | undefined
  let input: { start: number; end: number } | undefined
  let selects = false
  let named = false
  for (let step = rest.next(); !step.done; step = rest.next()) {
    const token = step.value
    if (token.text === '(' && selects && isWord(before, 'INPUT')) input = { start: before?.start ?? 0, end: token.end }
    if (token.text === '(') depth++
    if (token.text === ')') depth--
    if (depth === 0 && token.kind === 'word' && named) {
      if (isWord(before, 'FORMAT')) {
        if (selects && input === undefined) return { kind: 'select' }
        const formatAt = before?.start ?? 0
        const sourceAt = settingsAt ?? formatAt
        return {
          kind: 'data',
          data: { format: token.text, sourceAt, formatAt, dataAt: afterFormat(sql, token.end), input },
        }
      }
      if (isWord(token, 'VALUES') && !selects) {
        const sourceAt = settingsAt ?? token.start
        return {
          kind: 'data',
          data: { format: 'Values', sourceAt, formatAt: token.start, dataAt: token.end, input: undefined },
        }
      }
      if (isWord(token, 'SETTINGS') && !selects) settingsAt = token.start
      if (isWord(token, 'SELECT') || isWord(token, 'WITH')) selects = true
      if (isWord(token, 'INFILE') && isWord(before, 'FROM')) throw notImplemented('INSERT … FROM INFILE over HTTP')
    }
    if (token.text === ';' && token.kind === 'sign') return endOfInsert(rest, input !== undefined)
    if (!isWord(token, 'INTO') && !isWord(token, 'TABLE') && !isWord(token, 'FUNCTION')) named = true
    before = token
  }
  return endOfInsert(rest, input !== undefined)
}

/** An INSERT with its rows in a file, and what must run around it in its connection. */
export interface InsertFromFile {
  readonly before: readonly string[]
  readonly sql: string
  readonly after: readonly string[]
}

/**
 * The same INSERT reading its rows from a file. The engine could also take them behind the text, but it ends such data
 * at the first blank line and then runs what follows as SQL. Rows for `input()` go through a temporary table: only
 * `FROM INFILE` reads files here, as the engine's user has no right to any.
 */
export function readingFromFile(sql: string, data: InsertData, file: string): InsertFromFile {
  const source = ` FROM INFILE ${sqlString(file)} COMPRESSION 'none' `
  if (data.input === undefined) {
    const insert = `${sql.slice(0, data.sourceAt)}${source}${sql.slice(data.sourceAt, data.formatAt)} FORMAT ${data.format}`
    return { before: [], sql: insert, after: [] }
  }
  const [structure, close] = tokens(sql.slice(data.input.end))
  if (structure?.kind !== 'string' || close?.text !== ')') throw notImplemented('input() of anything but one string')
  const create = `CREATE TEMPORARY TABLE ${inputTable} ENGINE = Log AS SELECT * FROM null(${structure.text})`
  const insert = `${sql.slice(0, data.input.start)}${inputTable}${sql.slice(data.input.end + close.end, data.formatAt)}`
  return {
    before: [create, `INSERT INTO ${inputTable}${source}FORMAT ${data.format}`],
    sql: insert,
    after: [`DROP TEMPORARY TABLE IF EXISTS ${inputTable}`],
  }
}
