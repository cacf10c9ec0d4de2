import { parseSource, walk } from './parse-source.ts'
import { isTestPath, type SourceFile } from './source-file.ts'

const inRunningCode = (tree: readonly SourceFile[]) =>
  tree.filter(({ path }) => path.endsWith('.ts') && !isTestPath(path) && !path.startsWith('examples/'))

const sorted = (names: Iterable<string>) => [...new Set(names)].toSorted()

const variable = /\bWEIR_[A-Z0-9]+(?:_[A-Z0-9]+)*\b(?!_?\*)/g

/** Names of environment variables in a text. */
export const variablesIn = (text: string): string[] => sorted(text.match(variable) ?? [])

/** Variables that the running code, the launcher or the shipped policy names; test/ and examples/ have their own. */
export function codeVariables(tree: readonly SourceFile[]): string[] {
  const texts = tree.filter(({ path }) => path === 'weir' || path === 'weir.yaml')
  return sorted([...inRunningCode(tree), ...texts].flatMap(({ text }) => variablesIn(text)))
}

/** Metrics: keys of object literals that begin with `weir_` or `gen_ai_`, as registerScraped is given them. */
export function codeMetrics(tree: readonly SourceFile[]): string[] {
  const names = inRunningCode(tree).flatMap((file) => {
    const found: string[] = []
    walk(parseSource(file).program, (node) => {
      if (node.type !== 'Property') return
      const { key } = node
      const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? String(key.value) : ''
      if (/^(?:weir|gen_ai)_/.test(name)) found.push(name)
    })
    return found
  })
  return sorted(names)
}

/** Literal arguments of calls to one function: `problem('not-found', …)`. */
export function argumentsOf(tree: readonly SourceFile[], name: string): string[] {
  const found = inRunningCode(tree).flatMap((file) => {
    const words: string[] = []
    walk(parseSource(file).program, (node) => {
      if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier' || node.callee.name !== name) return
      const [first] = node.arguments
      if (first?.type === 'Literal') words.push(String(first.value))
    })
    return words
  })
  return sorted(found)
}

/** Names that are texts somewhere in the running code, such as an error's code where it is thrown. */
export function textsIn(tree: readonly SourceFile[], but: string): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const file of inRunningCode(tree).filter(({ path }) => path !== but)) {
    walk(parseSource(file).program, (node) => {
      if (node.type === 'Literal' && typeof node.value === 'string') texts.add(node.value)
    })
  }
  return texts
}
