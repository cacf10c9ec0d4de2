import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { noCrash } from '@weir/runtime/crash-point.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test, vi } from 'vitest'
import { spareName } from '../format/segment-files.ts'
import { readDead, TemporaryBase, testOptions } from '../testing/temporary-journal.ts'
import { type Disk, realDisk } from './disk.ts'
import { SegmentStore } from './segment-store.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const line = (n: number) => `{"n":${n}`

const until = async (what: () => boolean) =>
  expect(await waitUntil(what, { deadlineMs: 20_000, everyMs: 10 })).toBe(true)

const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

/** A disk whose faults a test sets. */
class FaultyDisk implements Disk {
  fault: 'none' | 'full' | 'half' | 'slow' | 'stuck' = 'none'
  writesNow = 0
  writesLater = 0
  #release: (() => void)[] = []

  writeSync(fd: number, bytes: Buffer, from: number, length: number, at: number): number {
    this.writesNow += 1
    if (this.fault === 'half' && length > 1) {
      realDisk.writeSync(fd, bytes, from, Math.ceil(length * 0.7), at)
      throw noSpace()
    }
    if (this.fault === 'full') throw noSpace()
    if (this.fault === 'slow' || this.fault === 'stuck') {
      const endsAt = performance.now() + 30
      while (performance.now() < endsAt);
    }
    return realDisk.writeSync(fd, bytes, from, length, at)
  }

  async write(fd: number, bytes: Buffer, from: number, length: number, at: number): Promise<number> {
    if (this.fault === 'full' || this.fault === 'half') throw noSpace()
    if (bytes.readUInt32LE(0) !== 0) this.writesLater += 1
    if (this.fault === 'stuck') await new Promise<void>((release) => this.#release.push(release))
    return realDisk.write(fd, bytes, from, length, at)
  }

  sync = realDisk.sync

  heal(): void {
    this.fault = 'none'
    for (const release of this.#release.splice(0)) release()
  }
}

/** Zeros for the next segment come by the thread pool: there is no room for them until it is made. */
function refuseSegments(disk: FaultyDisk) {
  const write = disk.write.bind(disk)
  const segments = { refused: 0, makeRoom: () => (disk.write = write) }
  disk.write = (fd, bytes, from, length, at) => {
    if (bytes.readUInt32LE(0) !== 0) return write(fd, bytes, from, length, at)
    segments.refused += 1
    return Promise.reject(noSpace())
  }
  return segments
}

/** Appends one record and says whether it was taken and written. */
type Attempt = (n: number) => Promise<boolean>

async function openFaulty() {
  const base = new TemporaryBase()
  const disk = new FaultyDisk()
  const { writer, directory } = await base.open({ disk })
  const log = writer.log(0)
  const attempt: Attempt = async (n) => log.append('acme', line(n), true) && (await log.writtenInTime())
  const close = async () => {
    disk.heal()
    await base[Symbol.asyncDispose]()
  }
  return { disk, writer, log, attempt, path: directory.path, [Symbol.asyncDispose]: close }
}

/** What the records in the journal say, of gaps apart. Their numbers have no hole. */
function read(path: string): { readonly found: readonly (number | undefined)[]; readonly missed: number } {
  const records = readDead(path).filter(({ topic }) => topic === 0)
  for (const { partition } of records) {
    const seqs = records.filter((one) => one.partition === partition).map(({ seq }) => seq)
    expect(seqs.toSorted((one, other) => one - other)).toEqual(seqs.map((_, at) => at))
  }
  const lines: { n?: number; gap?: string; count?: number }[] = records.map(({ value }) => JSON.parse(value.toString()))
  const gaps = lines.filter(({ gap }) => gap === 'journal_full')
  return {
    found: lines.flatMap(({ gap, n }) => (gap === undefined ? [n] : [])),
    missed: gaps.reduce((sum, { count = 0 }) => sum + count, 0),
  }
}

for (const fault of ['full', 'half'] as const) {
  test(`A write that the disk refuses (${fault}) leaves no record and no hole in the numbers, and writing resumes`, async () => {
    await using open = await openFaulty()
    const { disk, attempt, writer, log, path } = open
    expect(await attempt(1)).toBe(true)
    disk.fault = fault
    const several = [2, 3, 4].map(attempt)
    expect(await Promise.all(several)).toEqual([false, false, false])
    expect(writer.trouble).toBe('disk-error')
    expect(log.append('acme', line(5), true)).toBe(false)
    disk.heal()
    await until(() => writer.trouble === undefined)
    expect(await attempt(6)).toBe(true)
    expect(read(path)).toEqual({ found: [1, 6], missed: 4 })
  })
}

test('frames of a failed write that still stand behind a shorter one are not read', async () => {
  await using open = await openFaulty()
  const { disk, attempt, writer, path } = open
  disk.fault = 'half'
  await Promise.all(Array.from({ length: 200 }, (_, n) => attempt(n)))
  disk.heal()
  await until(() => writer.trouble === undefined)
  expect(await attempt(500)).toBe(true)
  expect(read(path)).toEqual({ found: [500], missed: 200 })
})

test('A coalesced record whose addition did not reach the disk reports that, and counts what did', async () => {
  await using open = await openFaulty()
  const { disk, log, writer, path } = open
  const sum = log.openCoalesced('acme', '{"n":', '')
  sum?.add()
  expect(await log.writtenInTime()).toBe(true)
  disk.fault = 'full'
  sum?.add()
  expect(await log.writtenInTime()).toBe(false)
  disk.heal()
  await until(() => writer.trouble === undefined)
  await until(() => sum?.add() === false)
  await log.writtenInTime()
  const { found, missed } = read(path)
  expect(found).toHaveLength(1)
  expect(found[0]).toBeGreaterThanOrEqual(1)
  expect(missed).toBe(1)
})

test('after a slow write the next ones leave the main thread free, and a quick disk is written at once again', async () => {
  await using open = await openFaulty()
  const { disk, attempt, writer, path } = open
  disk.fault = 'slow'
  expect(await attempt(0)).toBe(true)
  expect(writer.counters.slowWrites).toBe(1)
  disk.heal()
  expect(await attempt(1)).toBe(true)
  expect([disk.writesNow, disk.writesLater]).toEqual([1, 1])
  let n = 2
  for (; disk.writesNow < 2 && n < 1_000; n += 1) expect(await attempt(n)).toBe(true)
  expect(disk.writesNow).toBe(2)
  expect(read(path).found).toHaveLength(n)
})

test('a stalled disk is waited for no longer than the deadline; then nothing is taken until it is back, and nothing is twice', async () => {
  await using open = await openFaulty()
  const { disk, attempt, writer, log, path } = open
  disk.fault = 'slow'
  expect(await attempt(0)).toBe(true)
  disk.fault = 'stuck'
  const underWay = attempt(1)
  await new Promise((next) => setImmediate(next))
  const behind = attempt(2)
  const startMs = performance.now()
  expect(await Promise.all([underWay, behind])).toEqual([false, false])
  expect(performance.now() - startMs).toBeLessThan(3_000)
  expect(writer.trouble).toBe('stalled')
  expect(log.append('acme', line(3), true)).toBe(false)
  disk.heal()
  await until(() => writer.trouble === undefined)
  expect(await attempt(4)).toBe(true)
  // What was under way cannot be called back: it is in the file, though nobody was told so.
  await until(() => read(path).missed === 2)
  expect(read(path).found).toEqual([0, 1, 4])
})

test('a process that was busy or stopped while a healthy disk wrote does not take it for a stalled one', async () => {
  await using open = await openFaulty()
  const { disk, attempt, writer, path } = open
  disk.fault = 'slow'
  expect(await attempt(0)).toBe(true)
  disk.heal()
  const underWay = attempt(1)
  await new Promise((next) => process.nextTick(next))
  expect(disk.writesLater).toBe(1)
  const endsAt = performance.now() + 400
  while (performance.now() < endsAt);
  expect(await underWay).toBe(true)
  expect(writer.trouble).toBeUndefined()
  expect(read(path)).toEqual({ found: [0, 1], missed: 0 })
})

test('the final outcome of a write is given once it is certain, on a stalled disk later than that it was not written in time', async () => {
  await using open = await openFaulty()
  const { disk, attempt, log, writer, path } = open
  const told: string[] = []
  const append = (n: number) => {
    expect(log.append('acme', line(n), true)).toBe(true)
    void log.finallyWritten().then((isThere) => told.push(`${n} ${isThere}`))
    return log.writtenInTime()
  }
  disk.fault = 'slow'
  expect(await append(0)).toBe(true)
  disk.fault = 'stuck'
  const underWay = append(1)
  await new Promise((next) => setImmediate(next))
  expect(await Promise.all([underWay, append(2)])).toEqual([false, false])
  await until(() => told.length === 2)
  expect(told).toEqual(['0 true', '2 false'])
  disk.heal()
  await until(() => writer.trouble === undefined)
  expect(await attempt(4)).toBe(true)
  expect(told).toEqual(['0 true', '2 false', '1 true'])
  await until(() => read(path).missed === 1)
  expect(read(path).found).toEqual([0, 1, 4])
})

test("If the last part of a tick's records fails, those of its earlier parts are written", async () => {
  await using open = await openFaulty()
  const { disk, log, path } = open
  const outcomes: Promise<boolean>[] = []
  const append = (n: number) => {
    expect(log.append('acme', `{"n":${n},"x":"${'x'.repeat(100_000)}"`, true)).toBe(true)
    outcomes.push(log.finallyWritten())
  }
  for (let n = 0; disk.writesNow === 0; n += 1) append(n)
  disk.fault = 'full'
  expect(await log.writtenInTime()).toBe(false)
  expect(await Promise.all(outcomes)).toEqual(outcomes.map((_, n) => n + 1 < outcomes.length))
  expect(read(path)).toMatchObject({ found: { length: outcomes.length - 1 }, missed: 1 })
})

test('Additions have the outcome of their turn, and the record says what is known at its close', async () => {
  await using open = await openFaulty()
  const { disk, log, writer, path } = open
  let last = 0
  const sum = log.openCoalesced('acme', '{"n":', ',"last":0', () => `,"last":${last}`)
  const add = (by: number) => {
    last = by
    return sum?.add() === true ? sum.finallyWritten() : Promise.resolve('closed')
  }
  expect(await Promise.all([add(1), add(2)])).toEqual([true, true])
  disk.fault = 'full'
  expect(await Promise.all([add(3), log.writtenInTime()])).toEqual([false, false])
  last = 4
  disk.heal()
  await until(() => writer.trouble === undefined)
  await until(() => writer.counters.numbered === 2)
  expect(read(path)).toEqual({ found: [2], missed: 1 })
  expect(readDead(path).map(({ value }) => value.toString())).toContainEqual(expect.stringContaining('"n":2,"last":4,'))
})

test('Decisions that a failed disk refused, and those refused after them, are counted in a gap once each', async () => {
  await using open = await openFaulty()
  const { disk, attempt, log, writer, path } = open
  const sum = log.openCoalesced('acme', '{"n":', '')
  sum?.add()
  disk.fault = 'full'
  expect(await Promise.all([1, 2].map(attempt))).toEqual([false, false])
  expect(log.append('acme', line(3), true)).toBe(false)
  expect(writer.counters.gaps).toBe(4)
  disk.heal()
  await until(() => writer.counters.numbered === 1)
  expect(read(path)).toEqual({ found: [], missed: 4 })
})

test('a gap record that is being written when others are dropped stays the only one of its gap', async () => {
  await using open = await openFaulty()
  const { disk, attempt, log, writer, path } = open
  disk.fault = 'slow'
  expect(await attempt(0)).toBe(true)
  writer.state.set('adoptedBytes', writer.maxBytes)
  await until(() => writer.trouble === 'full')
  expect(await Promise.all([1, 2].map(attempt))).toEqual([false, false])
  disk.fault = 'stuck'
  writer.state.set('adoptedBytes', 0)
  await until(() => disk.writesLater === 1)
  expect(log.append('acme', line(3), true)).toBe(true)
  await until(() => writer.trouble === 'stalled')
  expect(writer.counters.gaps).toBe(3)
  disk.heal()
  const gaps = () => readDead(path).flatMap(({ value }) => JSON.parse(value.toString()).count ?? [])
  await until(() => writer.counters.numbered === 3 && gaps().length > 1)
  expect(gaps()).toEqual([2, 1])
})

test('Without space for the next segment the journal accepts what fits into the present one, and goes on once there is space', async () => {
  await using open = await openFaulty()
  const { disk, log, writer, path } = open
  const fill = async () => {
    let taken = 0
    while (log.append('acme', `{"n":1,"x":"${'x'.repeat(100_000)}"`, true)) {
      taken += 1
      if (!(await log.writtenInTime())) throw new Error('taken and not written')
    }
    return taken
  }
  // The second segment is there already.
  const segments = refuseSegments(disk)
  const taken = await fill()
  expect(taken).toBeGreaterThan(15)
  expect(writer.trouble).toBeUndefined()
  await until(() => writer.isOutOfSpace)
  segments.makeRoom()
  await until(() => log.append('acme', line(2), true))
  await until(() => !writer.isOutOfSpace)
  expect(await log.writtenInTime()).toBe(true)
  expect(read(path).found).toHaveLength(taken + 1)
})

test('An addition to a coalesced record that no segment has space for is never reported as written, and is in a gap', async () => {
  await using open = await openFaulty()
  const { disk, log, writer, path } = open
  const rest = writer.log(1)
  const fill = (bytes: number) => rest.append('acme', `{"x":"${'x'.repeat(bytes)}"`)
  const segments = refuseSegments(disk)
  while (writer.state.read().committed.segment < 2) {
    fill(100_000)
    expect(await rest.writtenInTime()).toBe(true)
  }
  // Asked for again when it has been refused.
  await until(() => segments.refused > 1)
  const sum = log.openCoalesced('acme', '{"n":', '')
  for (let bytes = 100_000; bytes >= 1; bytes /= 10) while (fill(bytes));
  // An empty sum takes as much as an addition.
  while (rest.openCoalesced('', '', '') !== undefined);
  for (let turn = 1; turn < 4; turn += 1) {
    expect(sum?.add()).toBe(true)
    expect(await log.writtenInTime()).toBe(false)
    expect(writer.counters.gaps).toBe(turn)
  }
  segments.makeRoom()
  await until(() => fill(1))
  expect(await writer.close()).toBe(true)
  const told = readDead(path).filter(({ topic }) => topic === 0)
  const gap = expect.stringContaining('"gap":"journal_full","count":3,')
  expect(told.map(({ value }) => value.toString())).toEqual([gap])
})

test('The space that a spare segment took before the disk was full is given back immediately', async () => {
  await using base = new TemporaryBase()
  const write: Disk['write'] = async (fd, bytes, from, length, at) =>
    at === 0 ? realDisk.write(fd, bytes, from, length, at) : Promise.reject(noSpace())
  const options = { ...testOptions, directory: base.path, segmentBytes: 4 * 1024 * 1024, crash: noCrash }
  const store = new SegmentStore({ ...options, disk: { ...realDisk, write } })
  await store.fillSpare()
  expect(store.isOutOfSpace).toBe(true)
  expect(existsSync(join(base.path, spareName))).toBe(false)
})
