import { statSync } from 'node:fs'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test, vi } from 'vitest'
import { readDead, TemporaryBase, texts } from '../testing/temporary-journal.ts'
import { type Disk, realDisk } from './disk.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

/** A line that makes a frame of about so many bytes. */
const line = (n: number, bytes = 0) => `{"n":${n},"x":"${'x'.repeat(bytes)}"`

const until = async (what: () => boolean) =>
  expect(await waitUntil(what, { deadlineMs: 20_000, everyMs: 10 })).toBe(true)

test('records of a tick reach the file in one write, before any promise resolves, under contiguous numbers', async () => {
  let writes = 0
  const disk: Disk = { ...realDisk, writeSync: (...all) => ++writes && realDisk.writeSync(...all) }
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open({ disk })
  const [decisions, outcomes] = [writer.log(0), writer.log(1)]
  for (let n = 0; n < 4; n += 1) expect(decisions.append('acme', line(n))).toBe(true)
  outcomes.append('acme', line(9))
  const waiting = [decisions.writtenInTime(), outcomes.writtenInTime()]
  expect(waiting[0]).toBe(waiting[1])
  expect(await waiting[0]).toBe(true)
  expect(writes).toBe(1)
  const tail = (seq: number) => `,"journal":"${writer.journal}","seq":${seq}}`
  expect(readDead(directory.path).map(({ value }) => value.toString())).toEqual([
    ...[0, 1, 2, 3].map((n) => line(n) + tail(n)),
    line(9) + tail(0),
  ])
})

test('records appended by callbacks of one turn share its write', async () => {
  await using base = new TemporaryBase()
  const { writer } = await base.open()
  const log = writer.log(0)
  const one = async (n: number) => {
    await Promise.resolve()
    log.append('a', line(n))
    return log.writtenInTime()
  }
  expect(await Promise.all([1, 2, 3].map(one))).toEqual([true, true, true])
  expect([writer.countsOf(0), writer.counters.writes]).toEqual([{ appended: 3, refused: 0 }, 1])
})

test('Outcomes, for which no caller waits, share a write with those of other callbacks, or go with the next decision', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const outcomes = writer.log(1)
  for (let n = 0; n < 5; n += 1) {
    outcomes.append('a', line(n))
    await new Promise<void>((done) => process.nextTick(done))
  }
  expect(writer.counters.writes).toBe(0)
  await until(() => writer.counters.writes > 0)
  outcomes.append('a', line(5))
  writer.log(0).append('a', line(6))
  expect(await writer.log(0).writtenInTime()).toBe(true)
  expect([writer.counters.writes, readDead(directory.path).length]).toEqual([2, 7])
  outcomes.append('a', line(7))
  expect(await outcomes.writtenInTime()).toBe(true)
  expect([writer.counters.writes, readDead(directory.path).length]).toEqual([3, 8])
  expect([writer.countsOf(0).appended, writer.countsOf(1).appended]).toEqual([1, 7])
  expect(writer.writeDuration.count).toBe(3)
})

test('A write that stores fewer bytes than it was given is continued', async () => {
  const disk: Disk = {
    ...realDisk,
    writeSync: (fd, bytes, from, length, at) => realDisk.writeSync(fd, bytes, from, Math.min(length, 7), at),
  }
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open({ disk })
  for (let n = 0; n < 10; n += 1) writer.log(0).append('a', line(n))
  expect(await writer.log(0).writtenInTime()).toBe(true)
  expect(readDead(directory.path)).toHaveLength(10)
})

test('segments follow each other, and a turn larger than the buffer is written in parts', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  for (let n = 0; n < 60; n += 1) expect(writer.log(0).append('a', line(n, 100_000))).toBe(true)
  expect(await writer.log(0).writtenInTime()).toBe(true)
  expect(readDead(directory.path).map(({ seq }) => seq)).toEqual(Array.from({ length: 60 }, (_, n) => n))
  expect(writer.state.read().committed.segment).toBeGreaterThan(5)
})

test('Above four fifths of the bound only reserved records are accepted, and at the bound none; freed space is used again', async () => {
  await using base = new TemporaryBase()
  const { writer } = await base.open({ maxBytes: 12 * 1024 * 1024 })
  const log = writer.log(0)
  const fill = async (isReserved: boolean) => {
    let taken = 0
    for (; log.append('a', line(0, 50_000), isReserved); taken += 1) if (taken % 10 === 0) await log.writtenInTime()
    return taken
  }
  const others = await fill(false)
  expect(log.openCoalesced('a', 'x'.repeat(60_000), 'y')).toBeUndefined()
  const reserved = await fill(true)
  expect(others / (others + reserved)).toBeCloseTo(0.85, 1)
  while (log.append('a', line(0), true));
  expect(writer.trouble).toBe('full')
  expect(writer.usedBytes).toBeLessThanOrEqual(writer.maxBytes)
  writer.state.set('firstSegment', 6)
  await until(() => log.append('a', line(0), false))
})

test('bytes of adopted directories take from the bound', async () => {
  await using base = new TemporaryBase()
  const { writer } = await base.open()
  writer.state.set('adoptedBytes', writer.maxBytes)
  await until(() => !writer.log(0).append('a', line(0), true))
})

test('Decisions that a full journal refuses are counted in the gap file, and recorded under a number once there is space; a correction is not counted', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const log = writer.log(0)
  writer.state.set('adoptedBytes', writer.maxBytes)
  await until(() => writer.trouble === 'full')
  for (let n = 0; n < 3; n += 1) expect(log.append('a', line(n), true)).toBe(false)
  expect(log.append('a', '{"n":3,"count":40,"z":1')).toBe(false)
  expect(log.append('a', '{"n":3,"count":0,"corrects":1', true)).toBe(false)
  await log.writtenInTime()
  expect([writer.countsOf(0), writer.counters.gaps]).toEqual([{ appended: 0, refused: 5 }, 43])
  const page = statSync(`${directory.path}/gap`)
  expect(texts(readDead(directory.path))).toEqual([expect.stringContaining('"gap":"journal_full","count":43,')])
  writer.state.set('adoptedBytes', 0)
  await until(() => writer.trouble === undefined && writer.counters.writes > 0)
  expect(log.append('a', line(7))).toBe(true)
  expect(await log.writtenInTime()).toBe(true)
  expect(readDead(directory.path)).toHaveLength(2)
  expect(texts(readDead(directory.path))[0]).toMatch(/^0\/\d\/0 \{"v":1,"gap":"journal_full","count":43,.*,"seq":0\}$/)
  expect(statSync(`${directory.path}/gap`)).toMatchObject({ size: page.size, ino: page.ino })
})

test('Equal records become one coalesced record with their count, which takes its number when it closes', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const log = writer.log(0)
  // The one opened first is closed no later than the other.
  const empty = log.openCoalesced('acme', '{"count":', ',"z":1')
  const sum = log.openCoalesced('äcme', '{"count":', ',"z":"s"', () => ',"z":"ß"')
  for (let n = 0; n < 1_000; n += 1) {
    expect(sum?.add()).toBe(true)
    if (n === 500) expect(await log.writtenInTime()).toBe(true)
  }
  expect(writer.state.read().watermarkMs).toBeLessThan(Date.now())
  log.append('äcme', line(1))
  expect(await log.writtenInTime()).toBe(true)
  await until(() => writer.countsOf(0).appended === 2)
  expect([sum?.add(), empty?.add()]).toEqual([false, false])
  const found = texts(readDead(directory.path))
  expect(found).toHaveLength(2)
  expect(found[1]).toMatch(/^0\/\d\/1 \{"count":1000,"z":"ß","journal":".{36}","seq":1\}$/)
})

test('The watermark waits for open coalesced records, and rises on its own otherwise', async () => {
  await using base = new TemporaryBase()
  const { writer } = await base.open()
  const openedMs = Date.now()
  const sum = writer.log(0).openCoalesced('a', '{"count":', '')
  sum?.add()
  await writer.log(0).writtenInTime()
  expect(writer.state.read().watermarkMs).toBeLessThanOrEqual(openedMs)
  await until(() => writer.state.read().watermarkMs > openedMs + 900)
})

test('a directory that another process took is written no more', async () => {
  await using base = new TemporaryBase()
  let isTaken = false
  const { writer, directory } = await base.open({ onTakenAway: () => (isTaken = true) })
  const { renameSync } = await import('node:fs')
  renameSync(directory.path, `${directory.path}-taken`)
  await until(() => isTaken)
  expect(writer.trouble).toBe('taken-away')
  expect(writer.log(0).append('a', line(1), true)).toBe(false)
  renameSync(`${directory.path}-taken`, directory.path)
})

test('partitions can be raised; what is numbered keeps its partition', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  writer.setPartitions(0, 1)
  for (let n = 0; n < 8; n += 1) writer.log(0).append(`k${n}`, line(n))
  writer.setPartitions(0, 12)
  for (let n = 0; n < 300; n += 1) writer.log(0).append(`k${n}`, line(n))
  await writer.log(0).writtenInTime()
  const partitions = new Set(readDead(directory.path).map(({ partition }) => partition))
  expect(partitions.size).toBe(12)
})
