/** A place in a journal: a segment by its number, and bytes into it. */
export interface Position {
  readonly segment: number
  readonly offset: number
}

/**
 * What the publisher must have brought to Kafka before it may say so: read in this order, `committed` holds all before
 * `watermarkMs`.
 */
export interface Committed {
  readonly watermarkMs: number
  readonly committed: Position
}

const committedAt = 0
const watermarkAt = 1
const firstSegmentAt = 2
const adoptedBytesAt = 3
const numbers = 4

/**
 * What the writer on the main thread and the publisher's thread know of each other, in shared memory. Each number is
 * written by one side only.
 */
export class SharedJournalPosition {
  readonly shared: SharedArrayBuffer
  readonly #numbers: BigInt64Array

  constructor(shared = new SharedArrayBuffer(numbers * 8)) {
    this.shared = shared
    this.#numbers = new BigInt64Array(shared)
  }

  #get(at: number): number {
    return Number(Atomics.load(this.#numbers, at))
  }

  #set(at: number, value: number): void {
    Atomics.store(this.#numbers, at, BigInt(value))
  }

  /** Writer: all up to here is in the file, whole frames only. One number, so that no reader sees half a change. */
  commit(segment: number, offset: number): void {
    Atomics.store(this.#numbers, committedAt, (BigInt(segment) << 32n) | BigInt(offset))
  }

  /** Writer: every record with an earlier time than this is committed. Never goes back. */
  raiseWatermark(ms: number): void {
    if (ms > this.#get(watermarkAt)) this.#set(watermarkAt, ms)
  }

  /** Publisher: the watermark first, so that what is committed is at least what it speaks of. */
  read(): Committed {
    const watermarkMs = this.#get(watermarkAt)
    const both = Atomics.load(this.#numbers, committedAt)
    return { watermarkMs, committed: { segment: Number(both >> 32n), offset: Number(both & 0xffffffffn) } }
  }

  /** Publisher: the oldest segment that still exists; the writer takes those before it as free room. */
  set firstSegment(segment: number) {
    this.#set(firstSegmentAt, segment)
  }

  get firstSegment(): number {
    return Math.max(1, this.#get(firstSegmentAt))
  }

  /** Publisher: bytes in directories adopted from dead processes; they take from this journal's bound. */
  set adoptedBytes(bytes: number) {
    this.#set(adoptedBytesAt, bytes)
  }

  get adoptedBytes(): number {
    return this.#get(adoptedBytesAt)
  }
}
