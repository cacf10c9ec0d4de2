import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { GapFile, gapName, readGap } from './gap-file.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'weir-gap-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('The gap file says how many decisions it counts and between when, and never grows', async () => {
  const page = new GapFile(directory)
  const { length } = readFileSync(join(directory, gapName))
  for (let n = 0; n < 100; n += 1) {
    page.count(2, 1_000 + n)
    page.write()
  }
  expect(readGap(directory)).toEqual({ generation: 1, count: 200, fromMs: 1_000, toMs: 1_099 })
  expect(readFileSync(join(directory, gapName))).toHaveLength(length)
  await page.close()
})

test('A torn half of the gap file leaves what was written before', async () => {
  const page = new GapFile(directory)
  page.count(1, 5)
  page.write()
  page.count(1, 6)
  page.write()
  await page.close()
  const path = join(directory, gapName)
  const bytes = readFileSync(path)
  // The second write went to the first half.
  writeFileSync(path, Buffer.concat([Buffer.alloc(20, 7), bytes.subarray(20)]))
  expect(readGap(directory)).toMatchObject({ count: 1 })
  writeFileSync(path, 'x')
  expect(readGap(directory)).toMatchObject({ count: 0 })
})

test('Decisions that are counted while a gap becomes a record belong to the next generation', async () => {
  const page = new GapFile(directory)
  page.count(5, 10)
  const recorded = page.gap
  page.count(2, 20)
  page.begin(recorded)
  expect(page.gap).toEqual({ generation: 2, count: 2, fromMs: 10, toMs: 20 })
  page.begin(page.gap)
  expect(page.gap).toMatchObject({ generation: 3, count: 0 })
  await page.close()
})

test('A write from the thread pool never replaces a newer one from the main thread', async () => {
  const page = new GapFile(directory)
  page.count(1, 5)
  const later = page.writeLater()
  page.count(1, 6)
  page.write()
  await later
  expect(readGap(directory)).toMatchObject({ count: 1 })
  page.write()
  expect(readGap(directory)).toMatchObject({ count: 2 })
  page.count(1, 7)
  await page.close()
  expect(readGap(directory)).toMatchObject({ count: 3 })
})
