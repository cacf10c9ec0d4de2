import { rmSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { partitionOf } from '@weir/kafka/partition.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import { type Frame, frameKinds, isNumbered } from '../format/frame.ts'
import { gapOpenLine, readGap } from '../format/gap-file.ts'
import type { JournalState } from '../format/journal-state.ts'
import { segmentPath } from '../format/segment-files.ts'
import { type JournalTopic, readAcked, readTopicsCopy, writeAcked } from '../format/state-files.ts'
import { type CorruptRange, FrameSource, type LocatedFrame } from './frame-source.ts'
import { SegmentRefs } from './segment-refs.ts'

/** A position in the order of records: a sequence number of a partition. */
type Position = Pick<Frame, 'topic' | 'partition' | 'seq'>

/** By topic, as its index in the list, and partition: the number that follows. */
export class NextSequences {
  readonly rows: number[][]

  constructor(topics: number, rows: readonly (readonly number[])[]) {
    this.rows = Array.from({ length: topics }, (_, topic) => [...(rows[topic] ?? [])])
  }

  get(topic: number, partition: number): number {
    return this.rows[topic]?.[partition] ?? 0
  }

  /** The next number follows this one, unless it is higher already. A topic that is not in the list has none. */
  pass({ topic, partition, seq }: Position): void {
    const row = this.rows[topic]
    if (row !== undefined) row[partition] = Math.max(seq + 1, row[partition] ?? 0)
  }
}

/** A sum whose opening was read. */
interface ReadSum {
  readonly frame: Frame
  readonly segment: number
  /** Before the count in its line, and after it. */
  readonly before: Buffer
  after: Buffer
  count: number
}

function halvesOf({ value }: Frame): Pick<ReadSum, 'before' | 'after'> {
  const half = value.indexOf(0)
  return { before: value.subarray(0, half), after: value.subarray(half + 1) }
}

/**
 * A record as it goes to Kafka: `topic` is its index in `JournalReader.topics`, `seq` is contiguous in topic and
 * partition, and `value` is the finished line, with journal and number.
 */
export interface JournalRecord extends Omit<Frame, 'kind' | 'epoch'> {
  /** Must stay on disk until Kafka has the record. */
  readonly segment: number
}

/**
 * Reads one directory from what Kafka is not known to have on, in order. Not safe for two
 * concurrent callers. Files are read synchronously, so it belongs on a thread of its own.
 */
export class JournalReader {
  readonly journal: string
  readonly topics: readonly JournalTopic[]
  readonly #directory: string
  readonly #state: JournalState | undefined
  readonly #crash: CrashPoint
  readonly #source: FrameSource
  readonly #sums = new Map<number, ReadSum>()
  readonly #holds: SegmentRefs
  /** After the last one read, and after the last one acknowledged. */
  readonly #next: NextSequences
  readonly #acked: NextSequences
  /** After the last one that a frame gives. */
  readonly #numbered: NextSequences
  /** Gap records read and not acknowledged. */
  #gaps: (Position & { readonly generation: number })[] = []
  #gapGeneration: number
  #ackedGapGeneration: number
  #unacknowledged = 0
  /** Of a dead directory: the end has been read, and what follows from it given out. */
  #isEnded = false

  /**
   * Reads a directory: with `state` a live one, up to what is committed there; without, a dead one, up to its last
   * whole frame, which no process may write any more.
   */
  constructor(directory: string, state?: JournalState, crash: CrashPoint = noCrash) {
    const topics = readTopicsCopy(directory)
    if (topics === undefined)
      throw new WeirError(
        'JOURNAL_UNUSABLE',
        `${directory} has no readable topics.json, which identifies its records. Restore the one of ${dirname(directory)}.`,
      )
    const acked = readAcked(directory)
    this.journal = basename(directory)
    this.topics = topics
    this.#directory = directory
    this.#state = state
    this.#crash = crash
    this.#source = new FrameSource(directory)
    this.#holds = new SegmentRefs(directory)
    this.#acked = new NextSequences(topics.length, acked.next)
    this.#numbered = new NextSequences(topics.length, acked.numbered)
    this.#next = new NextSequences(topics.length, acked.next)
    for (const [topic, row] of this.#numbered.rows.entries())
      for (const [partition, next] of row.entries()) this.#next.pass({ topic, partition, seq: next - 1 })
    this.#gapGeneration = acked.gapGeneration
    this.#ackedGapGeneration = acked.gapGeneration
  }

  /** Positions passed over because nothing could be read there; metering sees what is missing by the numbers. */
  get damage(): readonly CorruptRange[] {
    return this.#source.damage
  }

  /**
   * The next records, of about so many bytes; none when nothing more is committed at present. Of a dead directory, the
   * sums left open and the gap file come as its last records, under the next numbers; two readers of it number them
   * alike.
   */
  read(bytesMax: number): JournalRecord[] {
    const records: JournalRecord[] = []
    const committed = this.#state?.read().committed
    for (let bytes = 0; bytes < bytesMax && !this.#isEnded; ) {
      const located = this.#source.next(committed)
      if (located === undefined) {
        if (this.#state === undefined) records.push(...this.#end())
        break
      }
      const record = this.#take(located)
      if (record === undefined) continue
      records.push(record)
      bytes += record.value.length + record.key.length
    }
    return records
  }

  #take({ frame, segment }: LocatedFrame): JournalRecord | undefined {
    if (isNumbered(frame)) this.#numbered.pass(frame)
    switch (frame.kind) {
      case frameKinds.record:
        return this.#give(frame, segment, frame.key, frame.value)
      case frameKinds.gap:
        return this.#takeGap(frame, segment)
      case frameKinds.sumOpen:
        this.#sums.set(frame.seq, { frame, segment, ...halvesOf(frame), count: 0 })
        this.#holds.hold(segment)
        return undefined
      case frameKinds.sumAdd: {
        const sum = this.#sums.get(frame.seq)
        if (sum !== undefined) sum.count += Number(frame.value.toString('latin1'))
        return undefined
      }
      case frameKinds.sumDrop:
        this.#forgetSum(frame.seq)
        return undefined
      case frameKinds.sumClose:
        return this.#takeClose(frame)
    }
  }

  /** The text is the generation, a blank, the line. */
  #takeGap(frame: Frame, segment: number): JournalRecord | undefined {
    const blank = frame.value.indexOf(0x20)
    this.#noteGap(frame, Number(frame.value.toString('latin1', 0, blank)))
    return this.#give(frame, segment, frame.key, frame.value.subarray(blank + 1))
  }

  #noteGap({ topic, partition, seq }: Position, generation: number): void {
    this.#gapGeneration = Math.max(this.#gapGeneration, generation)
    this.#gaps.push({ topic, partition, seq, generation })
  }

  #forgetSum(number: number): ReadSum | undefined {
    const sum = this.#sums.get(number)
    if (sum === undefined) return undefined
    this.#sums.delete(number)
    this.#holds.release(sum.segment)
    return sum
  }

  /** A sum that was opened before what is still on disk has been acknowledged. */
  #takeClose(frame: Frame): JournalRecord | undefined {
    const sum = this.#forgetSum(Number(frame.value.toString('latin1')))
    if (sum === undefined) return undefined
    if (frame.key.length > 0) sum.after = frame.key
    const { topic, partition, seq, appendedMs } = frame
    return this.#give({ topic, partition, seq, appendedMs }, sum.segment, sum.frame.key, this.#sumLine(sum, seq))
  }

  #tail(seq: number): string {
    return `,"journal":"${this.journal}","seq":${seq}}`
  }

  #sumLine({ before, after, count }: ReadSum, seq: number): Buffer {
    return Buffer.concat([before, Buffer.from(String(count)), after, Buffer.from(this.#tail(seq))])
  }

  /** Undefined for what Kafka is known to have. */
  #give(
    head: Position & Pick<Frame, 'appendedMs'>,
    segment: number,
    key: Buffer,
    value: Buffer,
  ): JournalRecord | undefined {
    const { topic, partition, seq, appendedMs } = head
    if (topic >= this.topics.length || seq < this.#acked.get(topic, partition)) return undefined
    this.#next.pass(head)
    this.#holds.hold(segment)
    this.#unacknowledged += 1
    return { topic, partition, seq, key, value, appendedMs, segment }
  }

  /**
   * What a dead process left open, always in the same order and under the same numbers, so that every process that
   * sends them sends the same. The segments from the first one needed stay until all of it is acknowledged.
   */
  #end(): JournalRecord[] {
    this.#isEnded = true
    // A copy: what is numbered here has no frame.
    const numbered = new NextSequences(this.topics.length, this.#numbered.rows)
    const position = (topic: number, key: Buffer) => {
      const partition = partitionOf(key, this.topics[topic]?.partitions ?? 1)
      const found = { topic, partition, seq: numbered.get(topic, partition) }
      numbered.pass(found)
      return found
    }
    const sums = [...this.#sums.values()].sort((a, b) => a.frame.seq - b.frame.seq)
    const segment = Math.min(this.#source.position.segment, ...sums.map((sum) => sum.segment))
    const records = sums
      .filter(({ count }) => count > 0)
      .map((sum) => {
        const { key, topic, appendedMs } = sum.frame
        const head = { ...position(topic, key), appendedMs }
        return this.#give(head, segment, key, this.#sumLine(sum, head.seq))
      })
    for (const { frame } of sums) this.#forgetSum(frame.seq)
    const gap = readGap(this.#directory)
    if (gap.count > 0 && gap.generation > this.#gapGeneration) {
      const key = Buffer.from(this.journal)
      const head = { ...position(0, key), appendedMs: gap.toMs }
      this.#noteGap(head, gap.generation)
      records.push(this.#give(head, segment, key, Buffer.from(gapOpenLine(gap) + this.#tail(head.seq))))
    }
    return records.filter((record) => record !== undefined)
  }

  /**
   * Kafka has them, or they are in quarantine and Kafka has a gap record instead of them. In order within each
   * partition.
   */
  acknowledge(records: readonly JournalRecord[]): void {
    for (const record of records) {
      this.#acked.pass(record)
      this.#holds.release(record.segment)
    }
    this.#unacknowledged -= records.length
    if (this.#gaps.length > 0) this.#acknowledgeGaps()
  }

  #acknowledgeGaps(): void {
    const isAcked = ({ topic, partition, seq }: Position) => seq < this.#acked.get(topic, partition)
    for (const gap of this.#gaps)
      if (isAcked(gap)) this.#ackedGapGeneration = Math.max(this.#ackedGapGeneration, gap.generation)
    this.#gaps = this.#gaps.filter((gap) => !isAcked(gap))
  }

  /**
   * Writes down what Kafka has and deletes the segments that are not needed any more. To be called now and then, and at
   * the end.
   */
  save(): void {
    const gapGeneration = this.#ackedGapGeneration
    writeAcked(this.#directory, { next: this.#acked.rows, numbered: this.#numbered.rows, gapGeneration })
    this.#crash('journal_acked')
    for (const segment of this.#holds.free(this.#source.position.segment)) {
      rmSync(segmentPath(this.#directory, segment), { force: true })
      this.#holds.giveUp(segment)
      this.#crash('journal_segment_deleted')
    }
  }

  /** The oldest segment still on disk. */
  get firstSegment(): number {
    return this.#holds.first
  }

  /** Bytes of segments still on disk. */
  get bytes(): number {
    return this.#holds.segments().reduce((sum, segment) => sum + this.#sizeOf(segment), 0)
  }

  /** What is allocated, not what it may grow to. */
  #sizeOf(segment: number): number {
    const stat = statSync(segmentPath(this.#directory, segment), { throwIfNoEntry: false })
    return (stat?.blocks ?? 0) * 512
  }

  /** Records read and not acknowledged. */
  get unacknowledged(): number {
    return this.#unacknowledged
  }

  /** By topic and partition: the number that follows the last one acknowledged. */
  get acknowledgedUpTo(): readonly (readonly number[])[] {
    return this.#acked.rows
  }

  /** Of a dead directory: all is read and acknowledged. Always false of a live one. */
  get isDrained(): boolean {
    return this.#isEnded && this.#unacknowledged === 0
  }

  /** The number that follows the last record read of this partition. */
  nextSeq(topic: number, partition: number): number {
    return this.#next.get(topic, partition)
  }

  close(): void {
    this.#source.close()
  }
}
