import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'
import { checkCoreOrder, checkLayers, checkProcessUse } from './rules/layers.ts'
import { checkCatalog, checkDeclared, checkUsed } from './rules/manifests.ts'
import { formatFindings } from './rules/source-file.ts'

test('packages import only what layer-table.ts allows them', () => {
  expect(formatFindings(checkLayers(tree))).toEqual([])
})

test('the folders of core have an order', () => {
  expect(formatFindings(checkCoreOrder(tree))).toEqual([])
})

test('only main.ts files read the environment or end the process', () => {
  expect(formatFindings(checkProcessUse(tree))).toEqual([])
})

test('every import of a library is declared where it is used', () => {
  expect(formatFindings(checkDeclared(tree))).toEqual([])
})

test('every declared dependency is used', () => {
  expect(formatFindings(checkUsed(tree))).toEqual([])
})

test('versions stand in the catalog only, exact, and each is used', () => {
  expect(formatFindings(checkCatalog(tree))).toEqual([])
})
