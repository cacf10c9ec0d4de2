import { buckets, Histogram } from '@weir/runtime/histogram.ts'

/** A position in a journal: a segment by its number, and bytes into it. */
export interface Position {
  readonly segment: number
  readonly offset: number
}

/** What the publisher may say once it has sent what is `committed`: that holds all before `watermarkMs`. */
export interface Committed {
  readonly watermarkMs: number
  readonly committed: Position
}

/**
 * Indexes of the numbers that one side writes and the other reads. Counts are since the process started. `sent` and
 * `quarantined` have two, one for each topic.
 */
const indexes = {
  // Written by the writer, on the main thread.
  committed: 0,
  watermarkMs: 1,
  // Written by the publisher's thread. The oldest segment that still exists: those before it are free space.
  firstSegment: 2,
  // Bytes in directories adopted from dead processes; they take from this journal's bound.
  adoptedBytes: 3,
  adopted: 4,
  sent: 5,
  failedAttempts: 7,
  quarantined: 8,
  oldestMs: 10,
  replicas: 11,
  brokers: 12,
} as const
const histogramAt = 13
const bytes = 8 * histogramAt + 8 * Histogram.cellsOf(buckets.pipeline)
type Field = Exclude<keyof typeof indexes, 'committed'>

/**
 * What the writer on the main thread and the publisher's thread know of each other, in shared memory: reading it costs
 * nothing, and it outlives the thread.
 */
export class JournalState {
  readonly shared: SharedArrayBuffer
  /** Publisher: from the append of the oldest record of a batch until Kafka has the batch. */
  readonly publishDuration: Histogram
  readonly #numbers: BigInt64Array

  /** Without `shared` it is that of a new journal, whose first segment is number 1. */
  constructor(shared?: SharedArrayBuffer) {
    this.shared = shared ?? new SharedArrayBuffer(bytes)
    this.#numbers = new BigInt64Array(this.shared, 0, histogramAt)
    this.publishDuration = new Histogram(buckets.pipeline, new Float64Array(this.shared, 8 * histogramAt))
    if (shared === undefined) this.set('firstSegment', 1)
  }

  /** `topic` is its index in the list of topics, for numbers that each topic has. */
  get(field: Field, topic = 0): number {
    return Number(Atomics.load(this.#numbers, indexes[field] + topic))
  }

  set(field: Field, value: number, topic = 0): void {
    Atomics.store(this.#numbers, indexes[field] + topic, BigInt(value))
  }

  add(field: Field, value: number, topic = 0): void {
    Atomics.add(this.#numbers, indexes[field] + topic, BigInt(value))
  }

  /** Writer: all up to here is in the file, whole frames only. One number, so that no reader sees half a change. */
  commit(segment: number, offset: number): void {
    Atomics.store(this.#numbers, indexes.committed, (BigInt(segment) << 32n) | BigInt(offset))
  }

  /** Writer: every record with an earlier time than this is committed. Never goes back. */
  raiseWatermark(ms: number): void {
    if (ms > this.get('watermarkMs')) this.set('watermarkMs', ms)
  }

  /** Publisher: the watermark first, so that what is committed is at least what it speaks of. */
  read(): Committed {
    const watermarkMs = this.get('watermarkMs')
    const both = Atomics.load(this.#numbers, indexes.committed)
    return { watermarkMs, committed: { segment: Number(both >> 32n), offset: Number(both & 0xffffffffn) } }
  }
}
