import { notImplemented, serverException } from '../engine/exception.ts'
import { isWord, sqlString, type Token, tokens } from './tokens.ts'

/**
 * What the server must know of a statement to run it; everything else is the engine's business.
 * `insertData`: rows follow in the text or in the request's body. `select`: its result may be streamed. `read`: changes
 * nothing, answers whole. `write`: everything else, `INSERT … SELECT`, SET and USE included.
 */
export type Statement =
  | { readonly kind: 'empty' }
  | { readonly kind: 'insertData'; readonly data: InsertData }
  | { readonly kind: 'select' | 'read' | 'write' | 'insertSelect' | 'kill'; readonly format: string | undefined }

const readWords = new Set(['SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS', 'CHECK'])

function kindOf(first: Token): 'select' | 'read' | 'write' | 'kill' {
  const word = first.text.toUpperCase()
  if (word === 'SELECT' || word === 'WITH' || word === 'FROM' || word === '(') return 'select'
  if (word === 'KILL') return 'kill'
  return readWords.has(word) ? 'read' : 'write'
}

/** Returns the format that the statement's end names. Refuses what only client programs do, and a second statement. */
function readRest(all: Iterable<Token>, depthBefore = 0): string | undefined {
  let format: string | undefined
  let depth = depthBefore
  let before: Token | undefined
  let over = false
  for (const token of all) {
    if (over) {
      throw serverException(
        62,
        `Syntax error (Multi-statements are not allowed): failed at position ${token.start + 1}`,
      )
    }
    if (token.text === '(') depth++
    if (token.text === ')') depth--
    if (token.text === ';' && token.kind === 'sign') over = true
    if (depth === 0 && token.kind === 'word') {
      if (isWord(before, 'FORMAT')) format = token.text
      if (isWord(before, 'INTO') && isWord(token, 'OUTFILE')) throw serverException(358, 'INTO OUTFILE is not allowed')
    }
    before = token
  }
  return format
}

/** An INSERT whose rows follow its text. Offsets are into the text. */
export interface InsertData {
  readonly format: string
  /** Where the clause that names the source of the rows belongs. */
  readonly sourceAt: number
  /** Where `SETTINGS …` ends and the format is named: `FORMAT x` or `VALUES`. */
  readonly formatAt: number
  readonly dataAt: number
}

/** After `FORMAT x` the data begins behind blanks, one optional semicolon's rest, and at most one line break. */
function afterFormat(sql: string, end: number): number {
  const gap = /[ \t\f]*(?:;[ \t\f]*)?\r?\n?/y
  gap.lastIndex = end
  return end + (gap.exec(sql)?.[0].length ?? 0)
}

/**
 * Reads on behind the word INSERT up to the data; undefined if its rows come from a SELECT. The table's name comes
 * first, so that a table may be called `values`.
 */
function readInsert(sql: string, rest: Iterator<Token>): InsertData | undefined {
  let depth = 0
  let before: Token | undefined
  let settingsAt: number | undefined
  let selects = false
  let named = false
  for (let step = rest.next(); !step.done; step = rest.next()) {
    const token = step.value
    if (token.text === '(' && selects && isWord(before, 'INPUT')) throw notImplemented('input()')
    if (token.text === '(') depth++
    if (token.text === ')') depth--
    if (depth === 0 && token.kind === 'word' && named) {
      if (isWord(before, 'FORMAT')) {
        if (selects) return undefined
        const formatAt = before?.start ?? 0
        return { format: token.text, sourceAt: settingsAt ?? formatAt, formatAt, dataAt: afterFormat(sql, token.end) }
      }
      if (isWord(token, 'VALUES') && !selects) {
        const formatAt = token.start
        return { format: 'Values', sourceAt: settingsAt ?? formatAt, formatAt, dataAt: token.end }
      }
      if (isWord(token, 'SETTINGS') && !selects) settingsAt = token.start
      if (isWord(token, 'SELECT') || isWord(token, 'WITH')) selects = true
      if (isWord(token, 'INFILE') && isWord(before, 'FROM')) throw notImplemented('INSERT … FROM INFILE over HTTP')
    }
    if (token.text === ';' && token.kind === 'sign') {
      if (rest.next().done) return undefined
      throw serverException(62, 'Syntax error (Multi-statements are not allowed)')
    }
    if (!isWord(token, 'INTO') && !isWord(token, 'TABLE') && !isWord(token, 'FUNCTION')) named = true
    before = token
  }
  return undefined
}

/**
 * Makes an INSERT read its rows from a file. The engine could also take them behind the text, but it ends such data
 * at the first blank line and then runs what follows as SQL.
 */
export function readingFromFile(sql: string, { format, sourceAt, formatAt }: InsertData, file: string): string {
  const source = ` FROM INFILE ${sqlString(file)} COMPRESSION 'none' `
  return `${sql.slice(0, sourceAt)}${source}${sql.slice(sourceAt, formatAt)} FORMAT ${format}`
}

/**
 * Reads one statement. `sql` may go on with the data of an INSERT, in which case only the text before the data is
 * looked at; it should hold one character per byte (latin1), so that positions are byte offsets.
 */
export function readStatement(sql: string): Statement {
  const all = tokens(sql)
  const first = all.next().value
  if (first === undefined || first.text === ';') return { kind: 'empty' }
  if (isWord(first, 'INSERT')) {
    const data = readInsert(sql, all)
    return data === undefined ? { kind: 'insertSelect', format: readRest(all) } : { kind: 'insertData', data }
  }
  return { kind: kindOf(first), format: readRest(all, first.text === '(' ? 1 : 0) }
}
