import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
import type { JournalRecord } from '../read/journal-reader.ts'

/** Below Kafka's `max.message.bytes` of 1,048,588 for a batch. */
const batchBytesMax = 900_000

/** Enough that a request's fixed cost does not show; more only makes a repeat longer. */
const batchRecordsMax = 2_000

/** Of a partition that holds up the others; few, as a whole topic may be missing. */
const keptWhenEvicted = 50

/** The most that a record takes in a batch besides its bytes: its numbers and lengths. */
const numbersBytesMax = 24

/** What a record takes in memory in addition to its bytes: two views and the object. */
const overheadBytes = 300

/** Records and marks for one partition; a mark has the number -1, as it takes none. */
export type QueuedRecord = Omit<JournalRecord, 'segment'> & { readonly segment?: number }

/** Whether it is a record, and no watermark. */
export const isNumbered = (record: QueuedRecord): record is JournalRecord => record.segment !== undefined

const memoryOf = (record: QueuedRecord) => record.key.length + record.value.length + overheadBytes

/**
 * The records of one journal that are sent to one partition, in order. Those at its head are under way or next, and
 * leave only when Kafka has acknowledged them, or a gap record has replaced them: after any fault the same ones are
 * sent again.
 */
export class PartitionQueue {
  readonly topic: number
  readonly partition: number
  #records: QueuedRecord[] = []
  /** Of records held here. */
  memoryBytes = 0
  /** Number of those at the head that are under way; 0 when none are. */
  #underWay = 0
  /** Failed attempts in a row. */
  failures = 0
  #notBeforeMs = Number.NEGATIVE_INFINITY
  /** When Kafka last took something, by the publisher's clock, which begins at 0. */
  acknowledgedMs = Number.NEGATIVE_INFINITY
  /** Shrinks to find a record that Kafka refuses among those that it takes. */
  #recordsMax = batchRecordsMax
  /** The first sequence number that was read and then evicted for want of memory; it has to be read again. */
  evictedFromSeq: number | undefined
  /** The number after the last one that was read for the first time. */
  #readUpTo = 0

  constructor(topic: number, partition: number) {
    this.topic = topic
    this.partition = partition
  }

  get isEmpty(): boolean {
    return this.#records.length === 0
  }

  get isBusy(): boolean {
    return this.#underWay > 0
  }

  /** A full batch waits: there is nothing to gain by waiting for more. */
  get isRipe(): boolean {
    return this.#records.length >= batchRecordsMax || this.memoryBytes >= batchBytesMax
  }

  /** When its first record that is no mark was appended. */
  get oldestMs(): number | undefined {
    return this.#records.find(isNumbered)?.appendedMs
  }

  canSend(nowMs: number): boolean {
    return this.#underWay === 0 && this.#records.length > 0 && nowMs >= this.#notBeforeMs
  }

  /** Adds a record that is read for the first time. A record that follows an evicted one stays on disk with it. */
  pushRead(record: JournalRecord): void {
    this.#readUpTo = record.seq + 1
    if (this.evictedFromSeq === undefined) this.#push(record)
  }

  /** Adds a record that is read again, in order, if it was evicted. A record that was never read is still to come. */
  pushReread(record: JournalRecord): void {
    if (this.evictedFromSeq === undefined || record.seq < this.evictedFromSeq || record.seq >= this.#readUpTo) return
    this.#push(record)
    this.evictedFromSeq = record.seq + 1 < this.#readUpTo ? record.seq + 1 : undefined
  }

  #push(record: QueuedRecord): void {
    this.#records.push(record)
    this.memoryBytes += memoryOf(record)
  }

  /** A later watermark says all that an earlier one says. */
  pushWatermark(mark: QueuedRecord): void {
    const at = this.#records.length - 1
    const last = this.#records[at]
    if (last !== undefined && !isNumbered(last) && at >= this.#underWay) {
      this.memoryBytes -= memoryOf(last)
      this.#records.pop()
    }
    this.#push(mark)
  }

  /** The batch at the head, now under way. */
  nextBatch(): readonly QueuedRecord[] {
    let bytes = 0
    let count = 0
    for (const record of this.#records) {
      bytes += record.key.length + record.value.length + numbersBytesMax
      if (count > 0 && (count >= this.#recordsMax || bytes > batchBytesMax)) break
      count += 1
    }
    this.#underWay = count
    return this.#records.slice(0, count)
  }

  /** Kafka has what was under way. */
  acknowledge(nowMs: number): readonly QueuedRecord[] {
    const done = this.#records.slice(0, this.#underWay)
    this.#records = this.#records.slice(this.#underWay)
    for (const record of done) this.memoryBytes -= memoryOf(record)
    this.#underWay = 0
    this.failures = 0
    this.acknowledgedMs = nowMs
    this.#recordsMax = Math.min(batchRecordsMax, this.#recordsMax * 2)
    return done
  }

  /** Whether Kafka has it or not: the same again, after a pause. */
  fail(nowMs: number): void {
    this.#underWay = 0
    this.failures += 1
    this.#notBeforeMs = nowMs + retryDelayMs(this.failures)
  }

  /**
   * Kafka refuses something of the batch for good. Gives the culprit once it is alone; until then the batch is halved.
   */
  bisect(): QueuedRecord | undefined {
    const count = this.#underWay
    this.#underWay = 0
    if (count === 1) return this.#records[0]
    this.#recordsMax = Math.max(1, Math.floor(count / 2))
    return undefined
  }

  replaceFirst(record: QueuedRecord): void {
    const first = this.#records[0]
    if (first === undefined) return
    this.memoryBytes += memoryOf(record) - memoryOf(first)
    this.#records[0] = record
  }

  /** Evicts all records but the batch at the head, which is still tried. They are on disk. */
  evict(): void {
    const keep = Math.max(this.#underWay, Math.min(this.#records.length, this.#recordsMax, keptWhenEvicted))
    const gone = this.#records.slice(keep)
    const first = gone.find(isNumbered)
    if (first === undefined) return
    this.#records = this.#records.slice(0, keep)
    for (const record of gone) this.memoryBytes -= memoryOf(record)
    this.evictedFromSeq = first.seq
  }
}
