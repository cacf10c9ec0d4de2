import type { Node } from 'oxc-parser'
import { beginning, parseSource, walk } from './parse-source.ts'
import { type Finding, lineAt, type SourceFile } from './source-file.ts'

const rule = 'sizes'

/** A file above this cannot be held in mind. */
const fileLinesMax = 400
/** A file above this should have a reason. */
const fileLinesNoted = 250
/** One screen, of which the properties of a literal may take some. */
const functionLinesMax = 80

const measured = /\.(?:ts|lua|sh)$/

const lineCount = ({ text }: SourceFile) => text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

/** Sources that are longer than anybody can hold in mind. */
export function checkFileSizes(tree: readonly SourceFile[]): Finding[] {
  return tree
    .filter((file) => measured.test(file.path) && lineCount(file) > fileLinesMax)
    .map((file) => ({ path: file.path, line: 0, rule, what: `${lineCount(file)} lines, ${fileLinesMax} at most` }))
}

/** Sources that are on their way there; shown, not refused. */
export function longFiles(tree: readonly SourceFile[]): string[] {
  return tree
    .filter((file) => measured.test(file.path) && lineCount(file) > fileLinesNoted)
    .map((file) => `${file.path} has ${lineCount(file)} lines; over ${fileLinesNoted} a file should have a reason`)
}

const isFunction = (node: Node) =>
  node.type === 'FunctionDeclaration' || node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression'

const groups = ['describe', 'test', 'it']

/** A function that calls `test` or `describe` itself is a heading over tests; nobody follows it from top to bottom. */
function isHeading(node: Node): boolean {
  if (node.type !== 'ArrowFunctionExpression' && node.type !== 'FunctionDeclaration') return false
  if (node.body?.type !== 'BlockStatement') return false
  return node.body.body.some((one) => one.type === 'ExpressionStatement' && groups.includes(beginning(one.expression)))
}

function scriptFunctions(file: SourceFile): Finding[] {
  const found: Finding[] = []
  walk(parseSource(file).program, (node) => {
    if (!isFunction(node) || isHeading(node)) return
    const line = lineAt(file.text, node.start)
    const lines = lineAt(file.text, node.end) - line + 1
    const what = `a function of ${lines} lines, ${functionLinesMax} at most`
    if (lines > functionLinesMax) found.push({ path: file.path, line, rule, what })
  })
  return found
}

/** In Lua, the functions that begin at the margin; they end with an `end` there. */
function luaFunctions(file: SourceFile): Finding[] {
  const lines = file.text.split('\n')
  return lines.flatMap((text, at) => {
    if (!/^(?:local )?function\b|^[\w.]+ *= *function\b/.test(text)) return []
    const length = lines.slice(at).findIndex((one) => /^end\b/.test(one)) + 1
    const what = `a function of ${length} lines, ${functionLinesMax} at most`
    return length > functionLinesMax ? [{ path: file.path, line: at + 1, rule, what }] : []
  })
}

/** Literals that are only spread, which hide a list of properties or elements from a reader. */
export function checkSpreadLiterals(tree: readonly SourceFile[]): Finding[] {
  return tree
    .filter(({ path }) => path.endsWith('.ts'))
    .flatMap((file) => {
      const found: Finding[] = []
      walk(parseSource(file).program, (node) => {
        if (node.type !== 'SpreadElement') return
        const { type } = node.argument
        if (type !== 'ObjectExpression' && type !== 'ArrayExpression') return
        const what = 'a literal that is only spread: write its members where they go'
        found.push({ path: file.path, line: lineAt(file.text, node.start), rule: 'spread', what })
      })
      return found
    })
}

/** Functions that do not fit a screen. */
export function checkFunctionSizes(tree: readonly SourceFile[]): Finding[] {
  return tree.flatMap((file) => {
    if (file.path.endsWith('.ts')) return scriptFunctions(file)
    return file.path.endsWith('.lua') ? luaFunctions(file) : []
  })
}
