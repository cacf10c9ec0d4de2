import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'

test('no migration drops a view or a table: what metering inserts meanwhile would be missing there', () => {
  const files = tree.filter(({ path }) => path.startsWith('infra/clickhouse/migrations/'))
  expect(files.length).toBeGreaterThan(20)
  const drops = files.filter(({ text }) => /^\s*(?:DROP|DETACH|RENAME|EXCHANGE|TRUNCATE)\b/im.test(text))
  expect(drops.map(({ path }) => path)).toEqual([])
})
