/** A piece of SQL. Words are keywords and plain identifiers; quoted ones stand in backticks or double quotes. */
export interface Token {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'sign'
  readonly text: string
  readonly start: number
  readonly end: number
}

const skipped = /(?:\s+|--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?(?:\*\/|$))+/y
const patterns: readonly (readonly [Token['kind'], RegExp])[] = [
  ['word', /[A-Za-z_][A-Za-z0-9_]*/y],
  ['number', /[0-9][A-Za-z0-9_.]*/y],
  ['string', /'(?:[^'\\]|\\[\s\S]|'')*'?/y],
  ['quoted', /"(?:[^"\\]|\\[\s\S]|"")*"?|`(?:[^`\\]|\\[\s\S]|``)*`?/y],
  ['string', /\$(\w*)\$[\s\S]*?\$\1\$/y],
  ['sign', /[\s\S]/y],
]

function matchAt(pattern: RegExp, sql: string, position: number): string | undefined {
  pattern.lastIndex = position
  return pattern.exec(sql)?.[0]
}

/**
 * Yields the tokens of one statement: a reader that stops at the data of an INSERT never sees it. Comments and
 * white space are left out. Unfinished strings reach to the end; the engine words that error.
 */
export function* tokens(sql: string): Generator<Token, void, undefined> {
  let position = 0
  while (position < sql.length) {
    position += matchAt(skipped, sql, position)?.length ?? 0
    for (const [kind, pattern] of patterns) {
      const text = matchAt(pattern, sql, position)
      if (text === undefined) continue
      yield { kind, text, start: position, end: position + text.length }
      position += text.length
      break
    }
  }
}

/** Whether a token is this keyword, however it is written. */
export const isWord = (token: Token | undefined, keyword: string): boolean =>
  token?.kind === 'word' && token.text.toUpperCase() === keyword

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', "'": "\\'", '\n': '\\n', '\t': '\\t', '\0': '\\0' }

/** Returns a value as a string literal. */
export const sqlString = (value: string): string =>
  `'${value.replace(/[\\'\n\t\0]/g, (sign) => escapes[sign] ?? sign)}'`

/** Returns a name as a quoted identifier. */
export const sqlName = (name: string): string => `\`${name.replace(/[\\`]/g, (sign) => `\\${sign}`)}\``
