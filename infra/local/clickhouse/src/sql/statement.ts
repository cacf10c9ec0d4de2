import { serverException } from '../engine/exception.ts'
import { type InsertData, readInsert } from './insert-data.ts'
import { isWord, type Token, tokens } from './tokens.ts'

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

/** The format named at the statement's end; also refuses what only a client program may do, and a second statement. */
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

/**
 * Reads one statement. `sql` may go on with the data of an INSERT, in which case only the text before the data is
 * looked at; it should hold one character per byte (latin1), so that positions are byte offsets.
 */
export function readStatement(sql: string): Statement {
  const all = tokens(sql)
  const first = all.next().value
  if (first === undefined || first.text === ';') return { kind: 'empty' }
  if (isWord(first, 'INSERT')) {
    const insert = readInsert(sql, all)
    if (insert.kind === 'data') return { kind: 'insertData', data: insert.data }
    return { kind: 'insertSelect', format: readRest(all) }
  }
  return { kind: kindOf(first), format: readRest(all, first.text === '(' ? 1 : 0) }
}
