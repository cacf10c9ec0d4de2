import type { ImportProblem, Spot } from './foreign-file.ts'
import type { InputFile } from './imported-policy.ts'

/** A directive of nginx, with its block if it has one. */
export interface Directive extends Spot {
  readonly name: string
  readonly args: readonly string[]
  readonly block: readonly Directive[] | undefined
}

interface Read {
  readonly directives: readonly Directive[]
  /** Where it is no configuration of nginx; then there are no directives. */
  readonly problems: readonly ImportProblem[]
}

/** No real configuration is longer or deeper. */
const textLengthMax = 4 * 1024 * 1024
const depthMax = 32

/** Blank, comment, quoted word, sign, word. A word may have quotes and braces of variables in it. */
const token =
  /(\s+|#[^\n]*)|("(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*')|([;{}])|((?!["'])(?:\\[\s\S]|\$\{|[^\s;{\\])+)/gy

/** Reads files of nginx. An `include` becomes what the named files have that it may be for, if there are any. */
export function readNginxFiles(files: readonly InputFile[]): Read {
  const parts = files.map(({ name, text }) => ({ name, ...readNginxFile(text, name) }))
  const included = new Set<unknown>()
  const resolved = (directives: readonly Directive[], above: readonly unknown[]): readonly Directive[] =>
    directives.flatMap((one) => {
      const found = parts.filter((part) => isIncluded(part.name, one) && !above.includes(part))
      for (const part of found) included.add(part)
      if (found.length > 0) return found.flatMap((part) => resolved(part.directives, [...above, part]))
      return { ...one, block: one.block && resolved(one.block, above) }
    })
  const whole = parts.map((part) => ({ part, directives: resolved(part.directives, [part]) }))
  return {
    directives: whole.flatMap(({ part, directives }) => (included.has(part) ? [] : directives)),
    problems: parts.flatMap(({ problems }) => problems),
  }
}

/** The name and its folder are compared, as far as they are known, since files may be copies elsewhere. */
function isIncluded(path: string, { name, args: [pattern = ''] }: Directive): boolean {
  const count = -Math.min(2, path.split('/').length)
  const [file, wanted] = [path, pattern].map((one) => one.split('/').slice(count).join('/'))
  const form = (wanted ?? '').replaceAll(/[.+^${}()|[\]\\?]/g, '\\$&').replaceAll('*', '.*')
  return name === 'include' && new RegExp(`^${form}$`).test(file ?? '')
}

/** Reads a configuration of nginx. */
export function readNginxFile(text: string, file: string): Read {
  let [words, line, wordsLine, end]: [string[], number, number, number] = [[], 1, 1, 0]
  const fail = (message: string) => ({ directives: [], problems: [{ file, line, message }] })
  if (text.length > textLengthMax) return fail(`is longer than ${textLengthMax} characters`)
  if (/^# configuration file .+:$/m.test(text))
    return fail('is the output of nginx -T; pass the configuration files instead')
  const stack: Directive[][] = [[]]
  for (const [all, , quoted, sign, plain] of text.matchAll(token)) {
    const [name, ...args] = words
    if (quoted !== undefined || plain !== undefined) {
      if (name === undefined) wordsLine = line
      words.push((quoted?.slice(1, -1) ?? all).replaceAll(/\\(["'\\])/g, '$1'))
    } else if (sign === '}') {
      if (name !== undefined) return fail(`${name} has no ; at its end`)
      if (stack.length === 1) return fail('an unexpected }')
      stack.pop()
    } else if (sign !== undefined) {
      if (name === undefined) return fail(`an unexpected ${sign}`)
      if (stack.length > depthMax) return fail(`is nested deeper than ${depthMax} blocks`)
      if (name.endsWith('_by_lua_block')) return fail(`${name}: Lua is not supported; import a copy without it`)
      const block: Directive[] | undefined = sign === '{' ? [] : undefined
      stack.at(-1)?.push({ file, line: wordsLine, name, args, block })
      if (block !== undefined) stack.push(block)
      words = []
    }
    line += all.split('\n').length - 1
    end += all.length
  }
  if (end < text.length) return fail(`${JSON.stringify(text.slice(end, end + 20))} is not terminated`)
  if (stack.length > 1 || words.length > 0) return fail('ends within a directive')
  return { directives: stack[0] ?? [], problems: [] }
}
