import { expect, test } from 'vitest'
import { sources, tree } from './read-tree.ts'
import { formatFindings } from './rules/source-file.ts'
import { checkColumns, checkWords } from './rules/words.ts'

test('comments, titles of tests and documents use the words of docs/glossary.md', () => {
  expect(formatFindings(checkWords(tree))).toEqual([])
})

test('comments end at 120 columns', () => {
  const files = [...sources, ...tree.filter(({ path }) => /\.(?:lua|sql)$/.test(path))]
  expect(formatFindings(checkColumns(files))).toEqual([])
})
