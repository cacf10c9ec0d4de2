import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { segmentPath, segmentsIn } from '../format/segment-files.ts'
import { readDead, TemporaryBase, texts } from '../testing/temporary-journal.ts'
import { JournalReader, type JournalRecord } from './journal-reader.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const line = (n: number, bytes = 0) => `{"n":${n},"x":"${'x'.repeat(bytes)}"`

const numberIn = ({ value }: JournalRecord): number => JSON.parse(value.toString()).n

function readAll(reader: JournalReader): JournalRecord[] {
  const all: JournalRecord[] = []
  for (let some = reader.read(100_000); some.length > 0; some = reader.read(100_000)) all.push(...some)
  return all
}

test('a live journal is read up to what is committed, as it grows', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const reader = new JournalReader(directory.path, writer.state)
  expect(reader.read(1_000)).toEqual([])
  for (let n = 0; n < 50; n += 1) {
    writer.log(0).append('a', line(n, 40_000))
    expect(reader.read(1_000)).toEqual([])
    await writer.log(0).writtenInTime()
    expect(readAll(reader).map(numberIn)).toEqual([n])
  }
  expect(reader.isDrained).toBe(false)
  reader.close()
})

test('segments go when all in them is acknowledged, and a later reader begins behind what is', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  for (let n = 0; n < 60; n += 1) writer.log(0).append('a', line(n, 100_000))
  await writer.log(0).writtenInTime()
  const reader = new JournalReader(directory.path, writer.state)
  const all = readAll(reader)
  reader.acknowledge(all.slice(0, 5))
  reader.save()
  expect(reader.firstSegment).toBe(1)
  reader.acknowledge(all.slice(5, 25))
  reader.save()
  expect(reader.firstSegment).toBe(3)
  expect(segmentsIn(directory.path)[0]).toBe(3)
  expect(reader.unacknowledged).toBe(35)
  reader.close()
  const later = new JournalReader(directory.path, writer.state)
  expect(readAll(later).map(({ seq }) => seq)).toEqual(Array.from({ length: 35 }, (_, n) => n + 25))
  expect(later.nextSeq(0, all[0]?.partition ?? 0)).toBe(60)
  later.close()
})

test('The segment in which a coalesced record was opened stays until the record is acknowledged', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  const sum = writer.log(0).openCoalesced('a', '{"n":', '')
  for (let n = 0; n < 30; n += 1) {
    sum?.add()
    writer.log(0).append('b', line(n, 100_000))
    await writer.log(0).writtenInTime()
  }
  const reader = new JournalReader(directory.path, writer.state)
  reader.acknowledge(readAll(reader))
  reader.save()
  expect(reader.firstSegment).toBe(1)
  await writer.close()
  const [closed] = readAll(reader)
  expect(closed === undefined ? undefined : [numberIn(closed), closed.segment]).toEqual([30, 1])
  reader.acknowledge(closed === undefined ? [] : [closed])
  reader.save()
  expect(reader.firstSegment).toBe(3)
  reader.close()
})

test('A torn tail ends a dead journal, and costs none of the records before it', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  for (let n = 0; n < 5; n += 1) writer.log(0).append('a', line(n, n * 10))
  await writer.log(0).writtenInTime()
  const { offset } = writer.state.read().committed
  const path = segmentPath(directory.path, 1)
  const whole = Buffer.from(readFileSync(path).subarray(0, offset))
  for (let cut = 16; cut <= offset; cut += 1) {
    writeFileSync(path, Buffer.concat([whole.subarray(0, cut), Buffer.alloc(cut % 2 === 0 ? 4_096 : 0)]))
    const found = readDead(directory.path).map(numberIn)
    expect(found).toEqual([0, 1, 2, 3, 4].slice(0, found.length))
  }
  expect(readDead(directory.path)).toHaveLength(5)
})

test('damage in the middle costs only what it touches, and is reported', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  for (let n = 0; n < 30; n += 1) writer.log(0).append('a', line(n, 100_000))
  await writer.log(0).writtenInTime()
  const path = segmentPath(directory.path, 2)
  const bytes = readFileSync(path)
  bytes.fill(0, 150_000, 260_000)
  writeFileSync(path, bytes)
  const reader = new JournalReader(directory.path)
  const found = readAll(reader).map(numberIn)
  expect(found).toHaveLength(28)
  expect(new Set(found).size).toBe(28)
  expect(reader.damage).toMatchObject([{ segment: 2 }])
  expect(reader.nextSeq(0, readDead(directory.path)[0]?.partition ?? 0)).toBe(30)
  reader.close()
})

test('a segment that was made and not begun is no trouble', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  writer.log(0).append('a', line(1))
  await writer.log(0).writtenInTime()
  writeFileSync(segmentPath(directory.path, 2), '')
  expect(readDead(directory.path)).toHaveLength(1)
  truncateSync(segmentPath(directory.path, 2), 1_000)
  expect(readDead(directory.path)).toHaveLength(1)
})

test("damage at a segment's head costs no more than elsewhere; a layout of another version is refused whole", async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  for (let n = 0; n < 5; n += 1) writer.log(0).append('a', line(n, 100))
  await writer.log(0).writtenInTime()
  const path = segmentPath(directory.path, 1)
  const bytes = readFileSync(path)
  writeFileSync(path, Buffer.concat([Buffer.alloc(100, 1), bytes.subarray(100)]))
  expect(readDead(directory.path).map(numberIn)).toEqual([1, 2, 3, 4])
  writeFileSync(path, Buffer.concat([Buffer.from('WEIRJNL2'), bytes.subarray(8)]))
  expect(() => readDead(directory.path)).toThrow(expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }))
})

/** Leaves two sums open, of three topics' partitions, and counts two decisions into the gap file. */
async function withLeftovers(base: TemporaryBase) {
  const opened = await base.open()
  const log = opened.writer.log(0)
  for (let n = 0; n < 40; n += 1) {
    log.append(`k${n}`, line(n, 50_000))
    if (n === 5 || n === 25) {
      const sum = log.openCoalesced(`sum${n}`, '{"n":', `,"s":${n}`)
      for (let times = 0; times < n; times += 1) sum?.add()
    }
    await log.writtenInTime()
  }
  opened.writer.state.set('adoptedBytes', opened.writer.maxBytes)
  while (opened.writer.counters.gaps < 2) {
    log.append('k', line(99, 1))
    await new Promise((next) => setImmediate(next))
  }
  await log.writtenInTime()
  return opened
}

test('what a dead process left open is sent under the same numbers, however often its reader dies in between', async () => {
  await using base = new TemporaryBase()
  const { directory } = await withLeftovers(base)
  const whole = texts(readDead(directory.path))
  expect(whole.filter((text) => text.includes('"s":'))).toHaveLength(2)
  expect(whole.filter((text) => text.includes('"gap":"journal_full"'))).toHaveLength(1)
  const sent: string[] = []
  for (let rounds = 0; rounds < 200; rounds += 1) {
    const reader = new JournalReader(directory.path)
    const some = readAll(reader)
    if (some.length === 0) break
    // Each partition is acknowledged on its own; here, one record of one of them at a time.
    const mine = some.filter(({ partition }) => partition === (some[rounds % some.length]?.partition ?? 0)).slice(0, 3)
    reader.acknowledge(mine)
    reader.save()
    reader.close()
    sent.push(...texts(mine))
  }
  expect(sent.toSorted()).toEqual(whole.toSorted())
})

test('random records, sums, acknowledgements and deaths: each record once, in order, without a hole', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('append'), key: fc.nat(9), bytes: fc.nat(60_000) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('sum'), key: fc.nat(9), bytes: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('turn'), key: fc.nat(9), bytes: fc.nat(9) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('send'), key: fc.nat(9), bytes: fc.nat(80) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen'), key: fc.nat(9), bytes: fc.nat(9) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 80 }), async (steps) => {
      await using base = new TemporaryBase()
      const { writer, directory } = await base.open()
      const log = writer.log(0)
      const expected: number[] = []
      const sent = new Map<number, number[]>()
      let reader = new JournalReader(directory.path, writer.state)
      const send = (records: readonly JournalRecord[]) => {
        reader.acknowledge(records)
        for (const record of records) {
          const numbers = sent.get(record.partition) ?? []
          sent.set(record.partition, numbers)
          expect(record.seq).toBe(numbers.length)
          numbers.push(numberIn(record))
        }
        reader.save()
      }
      let n = 0
      for (const { do: what, key, bytes } of steps) {
        n += 1
        if (what === 'append') {
          if (log.append(`k${key}`, line(n, bytes))) expected.push(n)
        } else if (what === 'sum') {
          const sum = log.openCoalesced(`k${key}`, `{"n":${1_000 + n}`, ',"sum":1')
          for (let times = 0; times < bytes; times += 1) sum?.add()
          expected.push(Number(`${1_000 + n}${bytes}`))
        } else if (what === 'turn') await log.writtenInTime()
        else if (what === 'send') send(reader.read(bytes * 1_000))
        else {
          reader.close()
          // What was read and not acknowledged is read again.
          reader = new JournalReader(directory.path, writer.state)
        }
      }
      await log.writtenInTime()
      reader.close()
      reader = new JournalReader(directory.path)
      send(readAll(reader))
      expect(reader.isDrained).toBe(true)
      reader.close()
      expect([...sent.values()].flat().toSorted((a, b) => a - b)).toEqual(expected.toSorted((a, b) => a - b))
      expect(readdirSync(directory.path)).toContain('acked')
      expect(readDead(directory.path)).toEqual([])
    }),
    { numRuns: 40 },
  )
})
