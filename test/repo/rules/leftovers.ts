import type { Node } from 'oxc-parser'
import { beginning, parseSource, walk } from './parse-source.ts'
import { type Finding, isTestPath, lineAt, type SourceFile } from './source-file.ts'

const rule = 'leftovers'

const unfinished = /\b(?:TODO|FIXME|XXX)\b/
const silencer = /biome-ignore|@ts-(?:ignore|nocheck|expect-error)|eslint-disable/

/** Comments that put something off, or tell a tool to look away. */
export function checkComments(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) =>
    parseSource(file).comments.flatMap(({ value, start }) => {
      const word = (unfinished.exec(value) ?? silencer.exec(value))?.[0]
      return word === undefined ? [] : [{ path: file.path, line: lineAt(file.text, start), rule, what: word }]
    }),
  )
}

const testWords = ['test', 'it', 'describe', 'suite', 'bench']
const looseEnds = ['only', 'skip', 'todo', 'skipIf', 'runIf']

function memberProblem(node: Node): string | undefined {
  if (node.type !== 'MemberExpression' || node.property.type !== 'Identifier') return undefined
  const name = node.property.name
  const first = beginning(node.object)
  if (first === 'console') return `console.${name}: write to the program's own output or to the log`
  if (testWords.includes(first) && looseEnds.includes(name)) return `${first}.${name}: every test runs, always`
  return undefined
}

function nodeProblem(node: Node, inTest: boolean): string | undefined {
  if (node.type === 'TSAnyKeyword') return 'any'
  if (node.type === 'TSNonNullExpression') return 'a ! that says a value is there'
  if (node.type === 'PropertyDefinition' || node.type === 'VariableDeclarator') {
    return node.definite === true ? 'a ! that says a value will be there' : undefined
  }
  if (
    inTest &&
    node.type === 'CallExpression' &&
    node.callee.type === 'Identifier' &&
    node.callee.name === 'setTimeout'
  ) {
    return 'a timer in a test: wait for a condition'
  }
  if (inTest && node.type === 'ImportDeclaration' && node.source.value === 'node:timers/promises') {
    return 'a sleep in a test: wait for a condition'
  }
  return memberProblem(node)
}

/** Code that switches a check off, prints past the log, or makes a test wait for a duration. */
export function checkCode(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    const found: Finding[] = []
    walk(parseSource(file).program, (node) => {
      const what = nodeProblem(node, isTestPath(file.path))
      if (what !== undefined) found.push({ path: file.path, line: lineAt(file.text, node.start), rule, what })
    })
    return found
  })
}

// Written so that they do not find themselves.
const machinePath = /(?<![\w.:}\])*])\/(?:work|root|home|Users)\/[\w.-]+|\/tmp\/bash/
const registryHost = /https?:\/\/[\w.:-]*(?:registry|artifactory|nexus|verdaccio)[\w.:-]*/
const conflict = /^(?:<{7}|>{7}) .*/

/**
 * Texts that are true on one machine only, halves of a merge, and words that put something off outside TypeScript,
 * whose comments are read.
 */
export function checkTexts(tree: readonly SourceFile[]): Finding[] {
  return tree
    .filter(({ path }) => path !== 'pnpm-lock.yaml')
    .flatMap(({ path, text }) => {
      const patterns = [machinePath, registryHost, conflict, ...(path.endsWith('.ts') ? [] : [unfinished])]
      return text.split('\n').flatMap((content, at) =>
        patterns.flatMap((pattern) => {
          const match = pattern.exec(content)
          return match === null ? [] : [{ path, line: at + 1, rule, what: match[0] }]
        }),
      )
    })
}
