import { mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { partitionOf } from '@weir/kafka/partition.ts'
import { noCrash } from '@weir/runtime/crash-point.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { type Committed, JournalState } from '../format/journal-state.ts'
import { segmentPath, segmentsIn } from '../format/segment-files.ts'
import { TemporaryBase } from '../testing/temporary-journal.ts'
import type { JournalWriter } from '../write/open-writer.ts'
import { JournalSender } from './journal-sender.ts'
import { isNumbered, type PartitionQueue } from './partition-queue.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

/** Below what is read in one go, so that memory is full after it. */
const inFlightBytesMax = 200_000

const silent = createLogger('sender', 'silent')

/** A key for each partition. */
const keys = [0, 1, 2].map((partition) => {
  for (let n = 0; ; n += 1) if (partitionOf(`k${n}`, 3) === partition) return `k${n}`
})

/** What a writer has committed meanwhile shows as late as a test wants. */
class LateState extends JournalState {
  /** Given out first, one at each look. */
  readonly looks: Committed[] = []

  override read(): Committed {
    return this.looks.shift() ?? super.read()
  }
}

async function append(writer: JournalWriter, partition: number, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) writer.log(0).append(keys[partition] ?? '', `{"x":"${'x'.repeat(2_000)}"`, true)
  expect(await writer.log(0).writtenInTime()).toBe(true)
}

/** A sender, and Kafka's part in it: what it has of each partition. */
class Sending {
  readonly #path: string
  readonly state: LateState
  readonly has: number[][] = [[], [], []]
  readonly errors: string[] = []
  sender: JournalSender

  constructor(path: string, writer: JournalWriter) {
    this.#path = path
    this.state = new LateState(writer.state.shared)
    this.sender = this.#open()
  }

  #open() {
    const log = { ...silent, error: (_: object, event: string) => void this.errors.push(event) }
    return new JournalSender({ path: this.#path, state: this.state, inFlightBytesMax, log, crash: noCrash })
  }

  queue(partition: number): PartitionQueue {
    const queue = this.sender.queues.find((one) => one.topic === 0 && one.partition === partition)
    if (queue === undefined) throw new Error(`no partition ${partition}`)
    return queue
  }

  take(partition: number): void {
    const queue = this.queue(partition)
    const taken = queue.nextBatch().filter(isNumbered)
    this.has[partition]?.push(...taken.map(({ seq }) => seq))
    this.sender.acknowledge(queue, 0)
  }

  fail(partition: number): void {
    for (let times = 0; times < 4; times += 1) {
      this.queue(partition).nextBatch()
      this.queue(partition).fail(0)
    }
  }

  /** As the publisher's thread dies and the next one begins. */
  reopen(): void {
    this.sender = this.#open()
    const { acknowledgedUpTo } = this.sender.reader
    for (const [partition, seqs] of this.has.entries()) seqs.length = acknowledgedUpTo[0]?.[partition] ?? 0
  }

  /** Leaves nothing behind, in a number of turns that is known beforehand. */
  finish(): void {
    this.state.looks.length = 0
    for (let turns = 0; turns < 200 && !(this.sender.fill(0) && this.sender.isEmpty); turns += 1)
      for (const partition of this.has.keys()) this.take(partition)
    expect(this.sender.fill(0)).toBe(true)
    expect(this.sender.reader.unacknowledged).toBe(0)
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

/** Partition 1 waits for Kafka, and memory is full of it: records that do not fit were evicted. */
async function withLetGo(base: TemporaryBase) {
  const { writer, directory } = await base.open()
  await append(writer, 0, 1)
  await append(writer, 1, 300)
  const early = writer.state.read()
  await append(writer, 1, 100)
  const sending = new Sending(directory.path, writer)
  sending.sender.fill(0)
  sending.take(0)
  sending.fail(1)
  expect(sending.sender.fill(0)).toBe(false)
  expect(sending.queue(1).evictedFromSeq).toBe(50)
  return { writer, sending, early, path: segmentPath(directory.path, 1) }
}

test('while Kafka has accepted nothing yet, no record is evicted, from the first moment of the clock on', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  await append(writer, 1, 400)
  const sending = new Sending(directory.path, writer)
  sending.sender.fill(0)
  sending.fail(1)
  expect(sending.sender.fill(0)).toBe(false)
  expect(sending.queue(1).evictedFromSeq).toBeUndefined()
})

test('what is read again stops where the first reader stands, whatever is committed in between', async () => {
  await using base = new TemporaryBase()
  const { writer, sending } = await withLetGo(base)
  sending.sender.fill(0)
  sending.take(1)
  const before = sending.state.read()
  await append(writer, 1, 40)
  // The first reader sees what was there before twice, some and none; the other one sees all.
  sending.state.looks.push(before, before, before)
  for (let turns = 0; turns < 10 && sending.sender.reader.unacknowledged > 0; turns += 1) {
    sending.sender.fill(0)
    sending.take(1)
  }
  sending.finish()
  expect(sending.has[1]).toEqual(upTo(440))
})

test('what is read again after a restart is no more than the new thread has read, though more was read before', async () => {
  await using base = new TemporaryBase()
  const { sending, early } = await withLetGo(base)
  sending.sender.fill(0)
  sending.sender.save()
  sending.reopen()
  sending.sender.fill(0)
  sending.take(0)
  sending.fail(1)
  sending.sender.fill(0)
  sending.take(1)
  for (const looks of [[early, early], [early]]) {
    sending.state.looks.push(...looks)
    sending.sender.fill(0)
    sending.take(1)
  }
  sending.finish()
  expect(sending.has[1]).toEqual(upTo(400))
})

test('a partition that fails again while it is read again loses no record that is evicted a second time', async () => {
  await using base = new TemporaryBase()
  const { sending } = await withLetGo(base)
  sending.sender.fill(0)
  sending.take(1)
  sending.sender.fill(0)
  expect(sending.queue(1).evictedFromSeq).toBeGreaterThan(100)
  sending.fail(1)
  sending.sender.fill(0)
  expect(sending.queue(1).evictedFromSeq).toBe(100)
  sending.finish()
  expect(sending.has[1]).toEqual(upTo(400))
})

test('records that the disk lost after they were evicted are not waited for: the next reader skips them', async () => {
  await using base = new TemporaryBase()
  const { path, sending, early } = await withLetGo(base)
  sending.sender.fill(0)
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0, early.committed.offset))
  const send = () => {
    sending.take(1)
    sending.sender.fill(0)
  }
  expect(() => upTo(10).forEach(send)).toThrow(expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }))
  sending.reopen()
  sending.finish()
  expect(sending.has[1]).toEqual(upTo(300))
})

test('a disk that rejects the acknowledged position keeps the segments, is logged once, and is tried again', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  await append(writer, 0, 1_000)
  const sending = new Sending(directory.path, writer)
  sending.finish()
  const inTheWay = join(directory.path, 'acked.new')
  mkdirSync(inTheWay)
  for (let times = 0; times < 3; times += 1) sending.sender.save()
  expect(sending.errors).toEqual(['progress of sending not saved; no segment is deleted'])
  expect([segmentsIn(directory.path)[0], writer.state.get('firstSegment')]).toEqual([1, 1])
  rmdirSync(inTheWay)
  sending.sender.save()
  const { segment } = writer.state.read().committed
  expect([segmentsIn(directory.path)[0], writer.state.get('firstSegment')]).toEqual([segment, segment])
})

test('a segment that the disk does not delete holds up those behind it, and goes at a later call', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  await append(writer, 0, 1_500)
  const sending = new Sending(directory.path, writer)
  sending.finish()
  // A directory cannot be deleted as a file is; the reader has this segment open.
  const second = segmentPath(directory.path, 2)
  renameSync(second, `${second}.aside`)
  mkdirSync(second)
  sending.sender.save()
  expect([sending.errors.length, writer.state.get('firstSegment')]).toEqual([1, 2])
  rmdirSync(second)
  renameSync(`${second}.aside`, second)
  sending.sender.save()
  expect(segmentsIn(directory.path)[0]).toBe(writer.state.read().committed.segment)
})

test('random batches, failures, late commits and restarts: each partition gets every record, in order, and every segment goes', async () => {
  const step = fc.record({
    do: fc.constantFrom('append', 'append', 'take', 'take', 'take', 'fail', 'fill', 'fill', 'late', 'save', 'reopen'),
    partition: fc.nat(2),
    count: fc.nat(250),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      await using base = new TemporaryBase()
      const { writer, directory } = await base.open()
      const sending = new Sending(directory.path, writer)
      const total = [0, 0, 0]
      for (const { do: what, partition, count } of steps) {
        if (what === 'append') {
          await append(writer, partition, count)
          total[partition] = (total[partition] ?? 0) + count
        } else if (what === 'late') {
          const before = writer.state.read()
          sending.state.looks.splice(0)
          sending.state.looks.push(...Array.from({ length: (count % 5) + 1 }, () => before))
          await append(writer, partition, 3)
          total[partition] = (total[partition] ?? 0) + 3
        } else if (what === 'take') sending.take(partition)
        else if (what === 'fail') sending.fail(partition)
        else if (what === 'save') sending.sender.save()
        else if (what === 'reopen') sending.reopen()
        if (what !== 'append') sending.sender.fill(0)
      }
      sending.finish()
      expect(sending.has).toEqual(total.map(upTo))
      sending.sender.save()
      expect(segmentsIn(directory.path)[0]).toBe(writer.state.read().committed.segment)
    }),
    { numRuns: 60 },
  )
})
