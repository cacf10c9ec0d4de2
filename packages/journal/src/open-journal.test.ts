import { existsSync } from 'node:fs'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { stopJournal } from './open-journal.ts'
import { readDead, TemporaryBase, testOptions } from './testing/temporary-journal.ts'
import { type Disk, realDisk } from './write/disk.ts'
import type { WriterOptions } from './write/open-writer.ts'

/** Kafka has everything as soon as it may be sent. */
async function openStopping(base: TemporaryBase, options: Partial<WriterOptions>) {
  const { writer, directory } = await base.open(options)
  const drains: number[] = []
  const supervisor = { drain: async (ms: number) => drains.push(ms) > 0, end: async () => undefined }
  const parts = {
    directory: { ...directory, release: async () => undefined },
    writer,
    supervisor,
    log: testOptions.log,
  }
  return { writer, path: directory.path, drains, stop: () => stopJournal(parts, 5) }
}

const found = (path: string) => readDead(path).map(({ value }) => value.toString())

test('a journal of which Kafka has everything is gone after the stop', async () => {
  await using base = new TemporaryBase()
  const { writer, path, drains, stop } = await openStopping(base, {})
  writer.log(0).append('a', '{"n":1')
  expect(await stop()).toBe(true)
  expect([drains, existsSync(path)]).toEqual([[5], false])
})

test('A coalesced record that was answered and cannot be closed at the stop is left to the process that adopts the journal', async () => {
  let isFull = false
  const disk: Disk = {
    ...realDisk,
    writeSync: (...all) => {
      if (isFull) throw new Error('ENOSPC')
      return realDisk.writeSync(...all)
    },
  }
  await using base = new TemporaryBase()
  const { writer, path, drains, stop } = await openStopping(base, { disk })
  const sum = writer.log(0).openCoalesced('a', '{"count":', '')
  for (let n = 0; n < 7; n += 1) sum?.add()
  expect(await writer.log(0).writtenInTime()).toBe(true)
  isFull = true
  expect(await stop()).toBe(false)
  expect(drains).toEqual([])
  expect(found(path)).toEqual([expect.stringMatching(/^\{"count":7,/)])
})

test('decisions in the gap file of a journal that is still full at the stop are left to the process that adopts it', async () => {
  await using base = new TemporaryBase()
  const { writer, path, drains, stop } = await openStopping(base, {})
  writer.state.set('adoptedBytes', writer.maxBytes)
  expect(await waitUntil(() => writer.trouble === 'full', { deadlineMs: 20_000, everyMs: 10 })).toBe(true)
  for (let n = 0; n < 3; n += 1) expect(writer.log(0).append('a', `{"n":${n}`, true)).toBe(false)
  await writer.log(0).writtenInTime()
  expect(await stop()).toBe(false)
  expect(drains).toEqual([])
  expect(found(path)).toEqual([expect.stringContaining('"gap":"journal_full","count":3,')])
})

test('decisions that a slow disk refuses with the very last write are in the gap file', async () => {
  const disk: Disk = {
    ...realDisk,
    writeSync: (...all) => {
      const endsAt = performance.now() + 30
      while (performance.now() < endsAt);
      return realDisk.writeSync(...all)
    },
    write: (fd, bytes, ...rest) =>
      bytes.readUInt32LE(0) === 0 ? realDisk.write(fd, bytes, ...rest) : Promise.reject(new Error('ENOSPC')),
  }
  await using base = new TemporaryBase()
  const { writer, path, stop } = await openStopping(base, { disk })
  expect(writer.log(0).append('a', '{"n":0', true)).toBe(true)
  expect(await writer.log(0).writtenInTime()).toBe(true)
  for (let n = 1; n < 4; n += 1) expect(writer.log(0).append('a', `{"n":${n}`, true)).toBe(true)
  expect(await stop()).toBe(false)
  expect(found(path)).toEqual([expect.any(String), expect.stringContaining('"gap":"journal_full","count":3,')])
})
