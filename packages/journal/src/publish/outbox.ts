import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { JournalState } from '../format/journal-state.ts'
import { JournalReader } from '../read/journal-reader.ts'
import { isNumbered, type LaneRecord, PublishLane } from './publish-lane.ts'

/** Read from disk in one go: some milliseconds of work. */
const readBytes = 512 * 1024

/** Failures in a row, over about a second, from which on a partition may not hold up the others. */
const failuresToLetGo = 4

/** Kafka took something of another partition within so long: then it is not away as a whole. */
const aliveMs = 10_000

/** Whoever reads the directory from the start passes over what the disk lost meanwhile; here it would be waited for without end. */
const unreadable = (path: string) =>
  new WeirError('JOURNAL_UNUSABLE', `${path}: the disk has lost records that were read before. It is read anew.`)

interface OutboxOptions {
  readonly path: string
  readonly state?: JournalState
  readonly windowBytes: number
  readonly log: KafkaLog
  readonly crash: CrashPoint
}

/** One journal's directory on its way to Kafka: what was read ahead and is not acknowledged, by partition. */
export class Outbox {
  readonly #options: OutboxOptions
  readonly reader: JournalReader
  readonly path: string
  readonly #lanes = new Map<number, PublishLane>()
  readonly #key: Buffer
  readonly #counts: number[] = []
  /** Reads again what was let go. Its records are acknowledged to the first one. */
  #again: { readonly reader: JournalReader; readonly lanes: Set<PublishLane> } | undefined
  #isSaved = true
  /** The disk did not take it when last asked. */
  #isRefused = false
  /** End marks stand behind all else. */
  isEnding = false

  /** Without `state` it is a dead process's. */
  constructor(options: OutboxOptions) {
    this.#options = options
    this.path = options.path
    this.reader = new JournalReader(options.path, options.state, options.crash)
    this.#key = Buffer.from(this.reader.journal)
    for (const { topic, partition } of this.#partitions()) this.#lane(topic, partition)
  }

  *#partitions(): Generator<{ readonly topic: number; readonly partition: number }> {
    for (const [topic, { partitions }] of this.reader.topics.entries()) {
      const count = this.#counts[topic] ?? partitions
      for (let partition = 0; partition < count; partition += 1) yield { topic, partition }
    }
  }

  /** Over how many partitions marks of a topic go, by its place in the list, since Kafka says so. */
  setPartitions(topic: number, partitions: number): void {
    this.#counts[topic] = partitions
  }

  #lane(topic: number, partition: number): PublishLane {
    const id = topic * 65_536 + partition
    const known = this.#lanes.get(id)
    if (known !== undefined) return known
    const lane = new PublishLane(topic, partition)
    this.#lanes.set(id, lane)
    return lane
  }

  get lanes(): PublishLane[] {
    return [...this.#lanes.values()]
  }

  topicName(lane: PublishLane): string {
    return this.reader.topics[lane.topic]?.name ?? ''
  }

  /** Everything read is acknowledged, marks too. */
  get isEmpty(): boolean {
    return this.reader.unacknowledged === 0 && this.lanes.every((lane) => lane.isEmpty)
  }

  get oldestMs(): number | undefined {
    const times = this.lanes.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** The number of records that Kafka is known to have, counted from the journal's beginning. */
  acknowledgedCount(): number {
    const read = this.lanes.reduce((sum, { topic, partition }) => sum + this.reader.nextSeq(topic, partition), 0)
    return read - this.reader.unacknowledged
  }

  get #hasRoom(): boolean {
    let bytes = 0
    for (const lane of this.#lanes.values()) bytes += lane.memoryBytes
    return bytes < this.#options.windowBytes
  }

  /** Reads ahead as far as memory allows. True when nothing more is committed and all of it is queued. */
  fill(nowMs: number): boolean {
    let isAllRead = false
    while (!isAllRead && this.#hasRoom) {
      const records = this.reader.read(readBytes)
      isAllRead = records.length === 0
      for (const record of records) this.#lane(record.topic, record.partition).pushRead(record)
    }
    if (!isAllRead) this.#letGo(nowMs)
    this.#readAgain()
    return isAllRead && this.lanes.every(({ letGoFrom }) => letGoFrom === undefined)
  }

  /** A partition that Kafka does not take leaves the memory to the others, if it takes theirs. */
  #letGo(nowMs: number): void {
    const isAlive = this.lanes.some((lane) => lane.failures === 0 && nowMs - lane.acknowledgedMs < aliveMs)
    if (!isAlive) return
    for (const lane of this.#lanes.values()) {
      if (lane.failures < failuresToLetGo) continue
      lane.letGo()
      // What is being read again may have gone past what was let go just now; it takes another round.
      this.#again?.lanes.delete(lane)
    }
  }

  /** Once such a partition is through with what it kept, the rest is read from disk again. */
  #readAgain(): void {
    if (this.#again === undefined) {
      const lanes = this.lanes.filter((lane) => lane.letGoFrom !== undefined && lane.isEmpty)
      if (lanes.length === 0) return
      this.#again = { reader: new JournalReader(this.path, this.#options.state), lanes: new Set(lanes) }
    }
    const { reader, lanes } = this.#again
    const isThrough = () => [...lanes].every(({ letGoFrom }) => letGoFrom === undefined)
    while (!isThrough() && this.#hasRoom) {
      const records = reader.read(readBytes)
      if (records.length === 0) throw unreadable(this.path)
      for (const record of records) {
        const lane = this.#lane(record.topic, record.partition)
        if (lanes.has(lane)) lane.pushAgain(record)
      }
    }
    if (!isThrough()) return
    reader.close()
    this.#again = undefined
  }

  /** Only when `fill` has said true: then all before `markMs`, a time of the wall clock as in the records, is queued. */
  queueMarks(markMs: number, end: boolean): void {
    this.isEnding ||= end
    for (const { topic, partition } of this.#partitions()) {
      const seq = this.reader.nextSeq(topic, partition)
      const value = Buffer.from(encodeMark(markMs, this.reader.journal, seq, end))
      this.#lane(topic, partition).pushMark({ topic, partition, seq, key: this.#key, value, appendedMs: markMs })
    }
  }

  /** Kafka has what was under way in this partition. */
  acknowledge(lane: PublishLane, nowMs: number): void {
    const records: readonly LaneRecord[] = lane.acknowledge(nowMs)
    const numbered = records.filter(isNumbered)
    if (numbered.length === 0) return
    this.reader.acknowledge(numbered)
    this.#isSaved = false
  }

  /** Writes down what Kafka has, and gives up the room that it took. If the disk refuses, that is said once; the next call tries again. */
  save(): void {
    // Whoever reads again from the first segment on needs them all.
    if (this.#isSaved || this.#again !== undefined) return
    try {
      this.reader.save()
      this.#isSaved = true
    } catch (error) {
      const fields = { path: this.path, reason: String(error) }
      if (!this.#isRefused)
        this.#options.log.error(fields, 'what Kafka has could not be written down; no segment is deleted')
    }
    this.#isRefused = !this.#isSaved
    if (this.#options.state !== undefined) this.#options.state.firstSegment = this.reader.firstSegment
  }

  close(): void {
    this.#again?.reader.close()
    this.#again = undefined
    this.save()
    this.reader.close()
  }
}
