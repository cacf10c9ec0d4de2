import type { ImportProblem, Spot } from './foreign-file.ts'

/** A directive of nginx, with its block if it has one. */
export interface Directive extends Spot {
  readonly name: string
  readonly args: readonly string[]
  readonly block: readonly Directive[] | undefined
}

/** No real configuration is longer or deeper. */
const textLengthMax = 4 * 1024 * 1024
const depthMax = 32

/** Blank, comment, quoted word, sign, word. A word may have quotes and braces of variables in it. */
const token =
  /(\s+|#[^\n]*)|("(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*')|([;{}])|((?!["'])(?:\\[\s\S]|\$\{|[^\s;{\\])+)/y

interface Open {
  readonly directives: Directive[]
  readonly close: (block: readonly Directive[]) => void
}

/** Reads a configuration of nginx. `problem` says where it is none; then there are no directives. */
export function readNginxFile(
  text: string,
  file: string,
  firstLine = 1,
): { readonly directives: readonly Directive[]; readonly problem: ImportProblem | undefined } {
  let line = firstLine
  const fail = (message: string) => ({ directives: [], problem: { file, line, message } })
  if (text.length > textLengthMax) return fail(`is longer than ${textLengthMax} characters`)
  const root: Directive[] = []
  const stack: Open[] = [{ directives: root, close: () => {} }]
  let words: (Spot & { readonly text: string })[] = []
  token.lastIndex = 0
  while (token.lastIndex < text.length) {
    const at = token.lastIndex
    const found = token.exec(text)
    if (found === null) return fail(`${JSON.stringify(text.slice(at, at + 20))} is not terminated`)
    const [all, , quoted, sign, plain] = found
    const top = stack.at(-1)
    const [first, ...args] = words
    if (quoted !== undefined || plain !== undefined) {
      words.push({ file, line, text: (quoted?.slice(1, -1) ?? all).replaceAll(/\\(["'\\])/g, '$1') })
    } else if (sign === '}') {
      if (first !== undefined) return fail(`${first.text} has no ; at its end`)
      if (stack.length === 1 || top === undefined) return fail('an unexpected }')
      stack.pop()
      top.close(top.directives)
    } else if (sign !== undefined) {
      if (first === undefined) return fail(`an unexpected ${sign}`)
      if (stack.length > depthMax) return fail(`is nested deeper than ${depthMax} blocks`)
      const directive = { file, line: first.line, name: first.text, args: args.map((one) => one.text) }
      words = []
      if (sign === ';') top?.directives.push({ ...directive, block: undefined })
      else if (directive.name.endsWith('_by_lua_block')) {
        token.lastIndex = endOfCode(text, token.lastIndex)
        line += text.slice(at + 1, token.lastIndex).split('\n').length - 1
        top?.directives.push({ ...directive, block: [] })
      } else stack.push({ directives: [], close: (block) => top?.directives.push({ ...directive, block }) })
    }
    line += all.split('\n').length - 1
  }
  return stack.length > 1 || words.length > 0
    ? fail('ends within a directive')
    : { directives: root, problem: undefined }
}

/** The place behind the brace that ends a block of Lua. Braces in its texts and comments are none. */
function endOfCode(text: string, from: number): number {
  const parts = /"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|\[\[[\s\S]*?\]\]|--[^\n]*|[{}]/g
  parts.lastIndex = from
  let depth = 1
  for (let found = parts.exec(text); found !== null; found = parts.exec(text)) {
    depth += found[0] === '{' ? 1 : found[0] === '}' ? -1 : 0
    if (depth === 0) return parts.lastIndex
  }
  return text.length
}
