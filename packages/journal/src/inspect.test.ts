import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { adoptOrphans, createDirectory } from './directory/directory.ts'
import { segmentPath } from './format/segment-files.ts'
import { inspectJournals } from './inspect.ts'
import { JournalReader } from './read/journal-reader.ts'
import { TemporaryBase, testOptions, testTopics } from './testing/temporary-journal.ts'
import { openWriter } from './write/open-writer.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

/** A journal of a dead process with ten records of 200,000 bytes, of which Kafka has three. */
async function leaveDead(base: string): Promise<string> {
  const directory = await createDirectory(base, testTopics)
  const writer = await openWriter(directory, testOptions)
  for (let n = 0; n < 10; n += 1) writer.log(0).append('a', `{"n":${n},"x":"${'x'.repeat(200_000)}"`)
  await writer.close()
  const reader = new JournalReader(directory.path)
  reader.acknowledge(reader.read(10_000_000).slice(0, 3))
  reader.save()
  reader.close()
  await directory.release()
  return directory.path
}

test('An inspection says of each journal which process holds it and how many records wait, and changes nothing', async () => {
  await using base = new TemporaryBase()
  const dead = await leaveDead(base.path)
  const { writer, directory } = await base.open()
  writer.log(0).append('a', '{"n":1')
  await writer.log(0).writtenInTime()
  const before = readFileSync(segmentPath(dead, 1))
  const reports = await inspectJournals(base.path)
  const found = new Map(reports.map(({ path, ...rest }) => [path, rest]))
  expect(found.get(dead)).toMatchObject({ state: 'dead', waiting: 7, damage: [], holes: [] })
  expect(found.get(directory.path)).toMatchObject({ state: 'running', waiting: 1, damage: [], holes: [] })
  expect(found.get(dead)?.oldestMs).toBeLessThanOrEqual(Date.now())
  expect(readFileSync(segmentPath(dead, 1))).toEqual(before)
  const [taken = ''] = await adoptOrphans(base.path, directory)
  const again = (await inspectJournals(base.path)).find(({ path }) => path === taken)
  expect(again).toMatchObject({ state: 'adopted', by: directory.journal, waiting: 7 })
})

test('An inspection names what is damaged and which numbers that costs, a journal without topics.json, and a missing segment', async () => {
  await using base = new TemporaryBase()
  const [damaged, gone, unreadable] = [
    await leaveDead(base.path),
    await leaveDead(base.path),
    await leaveDead(base.path),
  ]
  const bytes = readFileSync(segmentPath(damaged, 2))
  bytes.fill(1, 300_000, 300_100)
  writeFileSync(segmentPath(damaged, 2), bytes)
  rmSync(segmentPath(gone, 1))
  rmSync(join(unreadable, 'topics.json'))
  const found = new Map((await inspectJournals(base.path)).map((report) => [report.path, report]))
  const partition = found.get(damaged)?.holes[0]?.partition
  expect(found.get(damaged)).toMatchObject({
    waiting: 6,
    damage: [{ segment: 2 }],
    holes: [{ topic: 'decisions', partition, from: 6, to: 7 }],
  })
  expect(found.get(gone)?.holes).toMatchObject([{ from: 3, to: 5 }])
  expect(found.get(unreadable)?.problem).toMatch(/topics\.json/)
})

test('a journal that is written and sent while it is looked at is sound', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const reader = new JournalReader(directory.path, writer.state)
  for (let n = 0; n < 150; n += 1) {
    writer.log(0).append('a', `{"n":${n},"x":"${'x'.repeat(100_000)}"`)
    await writer.log(0).writtenInTime()
    if (n % 3 > 0) continue
    const looked = inspectJournals(base.path)
    reader.acknowledge(reader.read(250_000))
    reader.save()
    writer.state.set('firstSegment', reader.firstSegment)
    const [report] = await looked
    expect(report?.problem).toBeUndefined()
    expect(report).toMatchObject({ damage: [], holes: [] })
  }
  reader.close()
})
