import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { afterAll, expect, it } from 'vitest'
import { allFences } from '../support/docs/fences.ts'
import { startTables } from '../support/servers/tables.ts'

const document = await readFile(join(projectRoot, 'docs/usage.md'), 'utf8')
const recipes = allFences
  .filter(({ language, notRun }) => language === 'sql' && notRun === undefined)
  .map(({ text }) => text.trim())

const tables = await startTables()
afterAll(() => tables.close())

it('the documents have recipes', () => {
  expect(recipes.length).toBeGreaterThan(8)
})

it.each(recipes)('a recipe of the documents is SQL for these tables: %s', async (sql) => {
  expect(await tables.rows(sql)).toEqual([])
})

it('every table that the page on usage speaks of exists, and no table that holds sums or records is left out', async () => {
  const rows = await tables.rows<{ name: string }>(
    "SELECT name FROM system.tables WHERE database = 'weir' AND name NOT LIKE 'schema%' AND name NOT LIKE '%_mv' ORDER BY name",
  )
  const named = [...new Set([...document.matchAll(/weir\.([a-z_0-9]+)\b(?!\.v\d)/g)].map(([, name]) => name))]
  expect(named.toSorted()).toEqual(rows.map(({ name }) => name))
})

it('each column of the raw tables still says what it holds', async () => {
  const rows = await tables.rows<{ name: string }>(
    "SELECT table || '.' || name AS name FROM system.columns WHERE database = 'weir' AND comment != '' AND table IN ('decisions', 'outcomes')",
  )
  const names = rows.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['decisions.cost', 'decisions.count', 'decisions.seq', 'outcomes.seq']))
})
