import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { JournalState } from '../format/journal-state.ts'
import { JournalReader } from '../read/journal-reader.ts'
import { isNumbered, PartitionQueue, type QueuedRecord } from './partition-queue.ts'
import { findTraced, type TracedBatch } from './traced-batch.ts'

/** Read from disk in one go: some milliseconds of work. */
const readBytes = 512 * 1024

/** Failures in a row, over about a second, from which on a partition may not hold up the others. */
const failuresToEvict = 4

/** If Kafka accepted records of another partition within this time, it is not down as a whole. */
const aliveMs = 10_000

/** A reader that begins at the start skips what the disk lost meanwhile; this one would wait for it for ever. */
const unreadable = (path: string) =>
  new WeirError(
    'JOURNAL_UNUSABLE',
    `${path}: the disk lost records that were already read. Reading from the start again.`,
  )

/** What a journal is sent with. */
export interface JournalSenderOptions {
  readonly path: string
  readonly state?: JournalState
  readonly inFlightBytesMax: number
  readonly log: KafkaLog
  readonly crash: CrashPoint
  /** Called for batches with traced decisions once Kafka has them; undefined where nothing is traced. */
  readonly onTraced?: ((batch: TracedBatch) => void) | undefined
}

/** One journal's directory on its way to Kafka: what was read ahead and is not acknowledged, by partition. */
export class JournalSender {
  readonly #options: JournalSenderOptions
  readonly reader: JournalReader
  readonly path: string
  readonly #queues = new Map<number, PartitionQueue>()
  readonly #key: Buffer
  readonly #counts: number[] = []
  /** Reads evicted records again. Their acknowledgements go to the first reader. */
  #reread: { readonly reader: JournalReader; readonly queues: Set<PartitionQueue> } | undefined
  #isSaved = true
  /** The disk did not take it when last asked. */
  #isRefused = false
  /** End watermarks are queued after all else. */
  isEnding = false

  /** Without `state` it is a dead process's. */
  constructor(options: JournalSenderOptions) {
    this.#options = options
    this.path = options.path
    this.reader = new JournalReader(options.path, options.state, options.crash)
    this.#key = Buffer.from(this.reader.journal)
    for (const { topic, partition } of this.#partitions()) this.#queue(topic, partition)
  }

  *#partitions(): Generator<{ readonly topic: number; readonly partition: number }> {
    for (const [topic, { partitions }] of this.reader.topics.entries()) {
      const count = this.#counts[topic] ?? partitions
      for (let partition = 0; partition < count; partition += 1) yield { topic, partition }
    }
  }

  /** Over how many partitions marks of a topic go, by its index in the list, since Kafka says so. */
  setPartitions(topic: number, partitions: number): void {
    this.#counts[topic] = partitions
  }

  #queue(topic: number, partition: number): PartitionQueue {
    const id = topic * 65_536 + partition
    const known = this.#queues.get(id)
    if (known !== undefined) return known
    const queue = new PartitionQueue(topic, partition)
    this.#queues.set(id, queue)
    return queue
  }

  get queues(): PartitionQueue[] {
    return [...this.#queues.values()]
  }

  topicName(queue: PartitionQueue): string {
    return this.reader.topics[queue.topic]?.name ?? ''
  }

  /** Everything read is acknowledged, marks too. */
  get isEmpty(): boolean {
    return this.reader.unacknowledged === 0 && this.queues.every((queue) => queue.isEmpty)
  }

  get oldestMs(): number | undefined {
    const times = this.queues.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** The number of a topic's records that Kafka is known to have, counted from the journal's beginning. */
  acknowledgedCount(topic: number): number {
    return this.reader.acknowledgedUpTo[topic]?.reduce((sum, next) => sum + (next ?? 0), 0) ?? 0
  }

  /** The number of records that were read, counted from the journal's beginning. */
  readCount(): number {
    return this.queues.reduce((sum, { topic, partition }) => sum + this.reader.nextSeq(topic, partition), 0)
  }

  get #hasMemory(): boolean {
    let bytes = 0
    for (const queue of this.#queues.values()) bytes += queue.memoryBytes
    return bytes < this.#options.inFlightBytesMax
  }

  /** Reads ahead as far as memory allows. True when nothing more is committed and all of it is queued. */
  fill(nowMs: number): boolean {
    let isAllRead = false
    while (!isAllRead && this.#hasMemory) {
      const records = this.reader.read(readBytes)
      isAllRead = records.length === 0
      for (const record of records) this.#queue(record.topic, record.partition).pushRead(record)
    }
    if (!isAllRead) this.#evict(nowMs)
    this.#readEvicted()
    return isAllRead && this.queues.every(({ evictedFromSeq }) => evictedFromSeq === undefined)
  }

  /**
   * Evicts the records of partitions that Kafka does not accept, if it accepts those of others, which then have the
   * memory.
   */
  #evict(nowMs: number): void {
    const isAlive = this.queues.some((queue) => queue.failures === 0 && nowMs - queue.acknowledgedMs < aliveMs)
    if (!isAlive) return
    for (const queue of this.#queues.values()) {
      if (queue.failures < failuresToEvict) continue
      queue.evict()
      // The second reader may be beyond what was evicted just now: the queue waits for the next one.
      this.#reread?.queues.delete(queue)
    }
  }

  /** Once such a partition is through with what it kept, the rest is read from disk again. */
  #readEvicted(): void {
    if (this.#reread === undefined) {
      const queues = this.queues.filter((queue) => queue.evictedFromSeq !== undefined && queue.isEmpty)
      if (queues.length === 0) return
      this.#reread = { reader: new JournalReader(this.path, this.#options.state), queues: new Set(queues) }
    }
    const { reader, queues } = this.#reread
    const isThrough = () => [...queues].every(({ evictedFromSeq }) => evictedFromSeq === undefined)
    while (!isThrough() && this.#hasMemory) {
      const records = reader.read(readBytes)
      if (records.length === 0) throw unreadable(this.path)
      for (const record of records) {
        const queue = this.#queue(record.topic, record.partition)
        if (queues.has(queue)) queue.pushReread(record)
      }
    }
    if (!isThrough()) return
    reader.close()
    this.#reread = undefined
  }

  /**
   * Only when `fill` has said true: then all before `watermarkMs`, a time of the wall clock as in the records, is
   * queued.
   */
  queueWatermarks(watermarkMs: number, end: boolean): void {
    this.isEnding ||= end
    for (const { topic, partition } of this.#partitions()) {
      const seq = this.reader.nextSeq(topic, partition)
      const value = Buffer.from(encodeMark(watermarkMs, this.reader.journal, seq, end))
      this.#queue(topic, partition).pushWatermark({
        topic,
        partition,
        seq,
        key: this.#key,
        value,
        appendedMs: watermarkMs,
      })
    }
  }

  /** Kafka has what was under way in this partition. */
  acknowledge(queue: PartitionQueue, nowMs: number): void {
    const records: readonly QueuedRecord[] = queue.acknowledge(nowMs)
    const numbered = records.filter(isNumbered)
    const [oldest] = numbered
    if (oldest === undefined) return
    this.#options.state?.publishDuration.observe(Math.max(0, Date.now() - oldest.appendedMs) / 1_000)
    this.#tellTraced(queue, numbered)
    this.reader.acknowledge(numbered)
    this.#isSaved = false
  }

  #tellTraced(queue: PartitionQueue, records: readonly QueuedRecord[]): void {
    const { onTraced, state } = this.#options
    if (onTraced === undefined) return
    const traced = findTraced(records)
    if (traced.length === 0) return
    const { partition } = queue
    const about = { topic: this.topicName(queue), partition, records: records.length, isAdopted: state === undefined }
    onTraced({ ...about, traced, acknowledgedMs: Date.now() })
  }

  /**
   * Writes down what Kafka has, and deletes the segments of it. If the disk refuses, that is logged once; the next
   * call tries again.
   */
  save(): void {
    // The second reader begins at the first segment, and needs them all.
    if (this.#isSaved || this.#reread !== undefined) return
    try {
      this.reader.save()
      this.#isSaved = true
    } catch (error) {
      const fields = { path: this.path, reason: String(error) }
      if (!this.#isRefused) this.#options.log.error(fields, 'progress of sending not saved; no segment is deleted')
    }
    this.#isRefused = !this.#isSaved
    this.#options.state?.set('firstSegment', this.reader.firstSegment)
  }

  close(): void {
    this.#reread?.reader.close()
    this.#reread = undefined
    this.save()
    this.reader.close()
  }
}
