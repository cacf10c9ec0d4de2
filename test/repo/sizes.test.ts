import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'
import { checkFileSizes, checkFunctionSizes, longFiles } from './rules/sizes.ts'
import { formatFindings } from './rules/source-file.ts'

test('no file is longer than 400 lines', () => {
  for (const line of longFiles(tree)) process.stderr.write(`${line}\n`)
  expect(formatFindings(checkFileSizes(tree))).toEqual([])
})

test('no function is longer than 70 lines', () => {
  expect(formatFindings(checkFunctionSizes(tree))).toEqual([])
})
