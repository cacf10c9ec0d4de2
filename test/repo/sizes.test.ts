import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'
import { checkFileSizes, checkFunctionSizes, checkSpreadLiterals, longFiles } from './rules/sizes.ts'
import { formatFindings } from './rules/source-file.ts'

test('no file is longer than 400 lines', () => {
  for (const line of longFiles(tree)) process.stderr.write(`${line}\n`)
  expect(formatFindings(checkFileSizes(tree))).toEqual([])
})

test('no function is longer than 80 lines', () => {
  expect(formatFindings(checkFunctionSizes(tree))).toEqual([])
})

test('no literal is only spread', () => {
  expect(formatFindings(checkSpreadLiterals(tree))).toEqual([])
  const text = 'export const a = { ...{ b: 1 }, ...(c ? { d: 2 } : {}) }\nexport const e = [...[1, 2], ...f]'
  expect(checkSpreadLiterals([{ path: 'a.ts', text }]).map(({ line }) => line)).toEqual([1, 2])
})
