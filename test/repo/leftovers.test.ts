import { algorithms } from '@weir/core/limits/limit.ts'
import { expect, test } from 'vitest'
import { sources, textOf, tree } from './read-tree.ts'
import { checkBarrels, checkDeadExports } from './rules/dead-exports.ts'
import { checkFileNames } from './rules/file-names.ts'
import { checkCode, checkComments, checkTexts } from './rules/leftovers.ts'
import { formatFindings, isTestPath } from './rules/source-file.ts'

test('no comment puts something off or tells a tool to look away', () => {
  expect(formatFindings(checkComments(sources))).toEqual([])
})

test('no check is switched off in the code, no test waits for a duration', () => {
  expect(formatFindings(checkCode(sources))).toEqual([])
})

test('no text names a path or a host of one machine', () => {
  expect(formatFindings(checkTexts(tree))).toEqual([])
})

test('file names are kebab-case and say what is in them', () => {
  expect(formatFindings(checkFileNames(tree))).toEqual([])
})

test('every exported name is imported somewhere, from the file that has it', () => {
  expect(formatFindings([...checkDeadExports(tree), ...checkBarrels(tree)])).toEqual([])
})

test('no running code compares the name of an algorithm: it asks for a fact of algorithm-facts.ts', () => {
  const comparison = new RegExp(`(?:[!=]== |case )'(?:${algorithms.join('|')})'`)
  const running = sources.filter(({ path }) => !isTestPath(path) && comparison.test(textOf(path)))
  expect(running.map(({ path }) => path)).toEqual([])
})
