import { expect, test } from 'vitest'
import { sources, tree } from './read-tree.ts'
import { formatFindings } from './rules/source-file.ts'
import { checkColumns, checkWords } from './rules/words.ts'

/** How many lines still wait for an editor: these numbers may only fall. */
const waiting = { words: 641, columns: 1_060 }

test('comments, titles of tests and documents use the words of docs/glossary.md', () => {
  const found = checkWords(tree)
  expect(found.length > waiting.words ? formatFindings(found) : []).toEqual([])
})

test('comments end at 120 columns', () => {
  const found = checkColumns([...sources, ...tree.filter(({ path }) => /\.(?:lua|sql)$/.test(path))])
  expect(found.length > waiting.columns ? formatFindings(found) : []).toEqual([])
})
