import { describe, expect, test } from 'vitest'
import { tree } from './read-tree.ts'
import { checkCircles, checkFolderCircles, checkTestingFolders } from './rules/circles.ts'
import { circlesYet, folderCirclesYet } from './rules/layer-table.ts'
import { type Finding, formatFindings, type SourceFile } from './rules/source-file.ts'

/** A small tree: the texts by their paths. */
const treeOf = (files: Readonly<Record<string, string>>): SourceFile[] =>
  Object.entries(files).map(([path, text]) => ({ path, text }))

const whats = (findings: readonly Finding[]) => findings.map(({ what }) => what)

/** The path of the only finding. */
const placeOf = ([finding, second]: readonly Finding[]) => (second === undefined ? finding?.path : 'several')

test('no files import each other in a circle', () => {
  expect(formatFindings(checkCircles(tree, circlesYet))).toEqual([])
})

test('no folders of a package import each other in a circle', () => {
  expect(formatFindings(checkFolderCircles(tree, folderCirclesYet))).toEqual([])
})

test('running code imports nothing from a testing folder', () => {
  expect(formatFindings(checkTestingFolders(tree))).toEqual([])
})

describe('what the rules find', () => {
  const circle = {
    'packages/redis/src/a.ts': "import { b } from './b.ts'",
    'packages/redis/src/b.ts': "import type { C } from './c.ts'\nexport const b = 1",
    'packages/redis/src/c.ts': "import './a.ts'",
    'packages/redis/src/d.ts': "import './a.ts'",
    'packages/redis/src/a.test.ts': "import './a.ts'",
  }

  test('files that import each other are found, by their types too, and those that only use them are not', () => {
    expect(whats(checkCircles(treeOf(circle), []))).toEqual([
      'these import each other: packages/redis/src/a.ts, packages/redis/src/b.ts, packages/redis/src/c.ts',
    ])
    expect(checkCircles(treeOf({ ...circle, 'packages/redis/src/c.ts': '' }), [])).toEqual([])
  })

  test('a circle of two packages is found, and a file that imports itself', () => {
    const between = {
      'packages/core/package.json': JSON.stringify({ name: '@weir/core' }),
      'packages/redis/package.json': JSON.stringify({ name: '@weir/redis' }),
      'packages/redis/src/a.ts': "import '@weir/core/errors.ts'",
      'packages/core/src/errors.ts': "import '@weir/redis/a.ts'",
    }
    expect(placeOf(checkCircles(treeOf(between), []))).toBe('packages/core/src/errors.ts')
    expect(placeOf(checkCircles(treeOf({ 'services/a/src/a.ts': "import './a.ts'" }), []))).toBe('services/a/src/a.ts')
  })

  test('a circle is left alone only if all of it is where circles are known, and there must be one', () => {
    expect(checkCircles(treeOf(circle), ['packages/redis/src/'])).toEqual([])
    expect(checkCircles(treeOf(circle), ['packages/redis/src/a'])).toHaveLength(2)
    const more = checkCircles(treeOf(circle), ['packages/redis/src/', 'packages/core/src/'])
    expect(placeOf(more)).toBe('packages/core/src/')
  })

  const folders = {
    'services/a/src/watch/look.ts': "import '../raise/claim.ts'",
    'services/a/src/raise/claim.ts': "import type { Row } from '../record/tables/row.ts'",
    'services/a/src/record/tables/row.ts': "import type { Look } from '../../watch/look.ts'",
  }

  test('folders that import each other by any of their files are found, though no files do', () => {
    const apart = { ...folders, 'services/a/src/watch/other.ts': '' }
    const row = { 'services/a/src/record/tables/row.ts': "import '../../watch/other.ts'" }
    expect(checkCircles(treeOf({ ...apart, ...row }), [])).toEqual([])
    expect(whats(checkFolderCircles(treeOf({ ...apart, ...row }), []))).toEqual([
      'these folders import each other: services/a/src/raise, services/a/src/record, services/a/src/watch',
    ])
  })

  test('a folder may import its parts, and they its files; another package is none of its folders', () => {
    const whole = {
      'services/a/src/main.ts': "import './watch/look.ts'",
      'services/a/src/watch/look.ts': "import './rates/rate.ts'\nimport '../types.ts'\nimport '@weir/b/watch/look.ts'",
      'services/a/src/watch/rates/rate.ts': "import '../rounds.ts'",
      'services/a/src/types.ts': '',
      'services/a/src/watch/rounds.ts': '',
      'packages/b/package.json': JSON.stringify({ name: '@weir/b' }),
      'packages/b/src/watch/look.ts': "import '@weir/a/watch/rounds.ts'",
      'services/a/package.json': JSON.stringify({ name: '@weir/a' }),
    }
    expect(checkFolderCircles(treeOf(whole), [])).toEqual([])
  })

  test('a circle of folders is left alone only where it is known, and there must be one', () => {
    expect(checkFolderCircles(treeOf(folders), ['services/a/src/'])).toEqual([])
    expect(checkFolderCircles(treeOf(folders), ['services/a/src/watch', 'services/b/src/'])).toHaveLength(3)
  })

  test('running code that imports from a testing folder is found; tests and the folder itself may', () => {
    const imports = "import './testing/clock.ts'"
    const tests = { 'services/a/src/a.test.ts': imports, 'services/a/src/testing/clock.ts': "import './more.ts'" }
    const helpers = { ...tests, 'services/a/src/testing/more.ts': '' }
    expect(checkTestingFolders(treeOf(helpers))).toEqual([])
    expect(placeOf(checkTestingFolders(treeOf({ ...helpers, 'services/a/src/a.ts': imports })))).toBe(
      'services/a/src/a.ts',
    )
  })
})
