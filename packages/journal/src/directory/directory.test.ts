import { existsSync, mkdirSync, readdirSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test, vi } from 'vitest'
import { readTopicsCopy } from '../format/state-files.ts'
import { readDead, TemporaryBase, testOptions, testTopics } from '../testing/temporary-journal.ts'
import { openWriter } from '../write/open-writer.ts'
import { adoptedIn, adoptOrphans, createDirectory, journalsIn, refuseEphemeral, removeDirectory } from './directory.ts'
import { isLocked } from './socket-lock.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

/** A journal with one record, of a process that is gone. */
async function leaveDead(base: string): Promise<string> {
  const directory = await createDirectory(base, testTopics)
  const writer = await openWriter(directory, testOptions)
  writer.log(0).append('a', '{"n":1')
  await writer.close()
  await directory.release()
  return directory.journal
}

test('a directory is held from its making to its release, also deep down in the file system', async () => {
  await using base = new TemporaryBase()
  for (const path of [base.path, join(base.path, 'x'.repeat(90), 'y'.repeat(90))]) {
    mkdirSync(path, { recursive: true })
    const directory = await createDirectory(path, testTopics)
    expect(await isLocked(directory.path)).toBe(true)
    await directory.release()
    expect(await isLocked(directory.path)).toBe(false)
  }
})

test('Of several processes that find the same dead directories, exactly one adopts each', async () => {
  await using base = new TemporaryBase()
  const dead = await Promise.all(Array.from({ length: 6 }, () => leaveDead(base.path)))
  const adopters = await Promise.all([base.open(), base.open(), base.open(), base.open()])
  const taken = await Promise.all(adopters.map(({ directory }) => adoptOrphans(base.path, directory)))
  expect(
    taken
      .flat()
      .map((path) => path.slice(-36))
      .toSorted(),
  ).toEqual(dead.toSorted())
  expect(taken.flat().map((path) => readDead(path).length)).toEqual(dead.map(() => 1))
  expect(journalsIn(base.path)).toHaveLength(4)
})

test('An adopted journal gives back the disk space that was reserved ahead', async () => {
  await using base = new TemporaryBase()
  await leaveDead(base.path)
  const { directory } = await base.open()
  const [path = ''] = await adoptOrphans(base.path, directory)
  expect(readdirSync(path)).not.toContain('spare')
  expect(statSync(join(path, '00000001.seg')).size).toBeLessThan(1_000)
  expect(readDead(path)).toHaveLength(1)
})

test('a directory that still holds adopted ones is not removed', async () => {
  await using base = new TemporaryBase()
  await leaveDead(base.path)
  const { directory } = await base.open()
  const [path = ''] = await adoptOrphans(base.path, directory)
  expect(() => removeDirectory(directory.path)).toThrow(/ENOTEMPTY/)
  removeDirectory(path)
  expect(adoptedIn(directory.path)).toEqual([])
})

test('A socket that was removed is created again, and no process takes the directory meanwhile', async () => {
  await using base = new TemporaryBase()
  const { directory } = await base.open()
  unlinkSync(join(directory.path, 'live.sock'))
  expect(await isLocked(directory.path)).toBe(true)
  const isBack = () => existsSync(join(directory.path, 'live.sock'))
  expect(await waitUntil(isBack, { deadlineMs: 20_000 })).toBe(true)
  expect(await isLocked(directory.path)).toBe(true)
})

test('A directory without a socket that was not written for long is dead, whichever way a clock was set', async () => {
  await using base = new TemporaryBase()
  for (const hours of [-5, 5]) {
    const path = join(base.path, crypto.randomUUID())
    mkdirSync(path)
    const seconds = Date.now() / 1_000 + hours * 3_600
    utimesSync(path, seconds, seconds)
    expect(await isLocked(path)).toBe(false)
  }
})

test('what a process left that died while it started is cleared away later, and one that starts now is not', async () => {
  await using base = new TemporaryBase()
  for (const name of ['old.starting', 'new.starting']) mkdirSync(join(base.path, name))
  const seconds = Date.now() / 1_000 - 3_600
  utimesSync(join(base.path, 'old.starting'), seconds, seconds)
  const { directory } = await base.open()
  await adoptOrphans(base.path, directory)
  expect(readdirSync(base.path).toSorted()).toEqual([directory.journal, 'new.starting', 'topics.json'].toSorted())
})

test('partition counts are there at the next start, also with a torn copy of them', async () => {
  await using base = new TemporaryBase()
  expect(readTopicsCopy(base.path)).toBeUndefined()
  const { writer } = await base.open()
  expect(readTopicsCopy(base.path)?.[0]).toEqual({ name: 'decisions', partitions: 3 })
  writer.setPartitions(0, 24)
  expect(readTopicsCopy(base.path)?.[0]).toEqual({ name: 'decisions', partitions: 24 })
  writeFileSync(join(base.path, 'topics.json'), '[{"name":"deci')
  expect(readTopicsCopy(base.path)).toBeUndefined()
})

test('a base directory that cannot be written says what to do', async () => {
  await using base = new TemporaryBase()
  const path = join(base.path, 'a-file')
  writeFileSync(path, '')
  await expect(createDirectory(path, testTopics)).rejects.toMatchObject({ code: 'JOURNAL_UNUSABLE' })
})

const types = { tmpfs: 0x01021994, overlay: 0x794c7630, ramfs: 0x858458f6 }

for (const [name, type] of Object.entries(types)) {
  test(`a journal on ${name} is refused by name, unless that is accepted`, async () => {
    await using base = new TemporaryBase()
    expect(() => refuseEphemeral(base.path, false, () => type)).toThrow(
      expect.objectContaining({ code: 'JOURNAL_UNUSABLE', message: expect.stringContaining(`is on ${name}`) }),
    )
    expect(() => refuseEphemeral(base.path, true, () => type)).not.toThrow()
  })
}

test('a disk is taken, and made a directory on', async () => {
  await using base = new TemporaryBase()
  const path = join(base.path, 'deep', 'down')
  expect(() => refuseEphemeral(path, false, () => 0xef53)).not.toThrow()
  const file = join(base.path, 'a-file')
  writeFileSync(file, '')
  expect(() => refuseEphemeral(join(file, 'journal'), false)).toThrow(
    expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }),
  )
})
