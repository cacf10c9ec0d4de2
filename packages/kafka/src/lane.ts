import type { Message } from 'kafkajs'

/** Below Kafka's `max.message.bytes` of 1,048,588 for a batch, with room for keys and 70 bytes of framing a record. */
export const batchBytesMax = 900_000

/** Enough that a request's fixed cost does not show; more only makes a repeat longer. */
export const batchRecordsMax = 1_000

/** Records that are sent, and if need be repeated, as one. */
export interface LaneBatch {
  readonly messages: Message[]
  /** UTF-8 bytes of keys and values. */
  bytes: number
  readonly firstAppendMs: number
}

/**
 * One partition's records in the order of their numbers. Batches are formed as records arrive; the first one is what is under way or
 * next, and it leaves only when Kafka has acknowledged it, so that a repeat is always the same records.
 */
export class Lane {
  readonly partition: number
  /** Batches wait in order; only the last one still grows. */
  readonly #batches: LaneBatch[] = []
  #sealed = false
  /** The number of the next record of this journal and partition. */
  nextSeq = 0
  /** Failed attempts in a row for the first batch. */
  failures = 0
  busy = false

  constructor(partition: number) {
    this.partition = partition
  }

  /** Whether the first batch is full, so that waiting for more gains nothing. */
  get isRipe(): boolean {
    return this.#batches.length > 1
  }

  get first(): LaneBatch | undefined {
    return this.#batches[0]
  }

  append(key: string, value: string, bytes: number): void {
    let last = this.#batches.at(-1)
    const isFull =
      last === undefined ||
      (this.#sealed && this.#batches.length === 1) ||
      last.messages.length >= batchRecordsMax ||
      last.bytes + bytes > batchBytesMax
    if (last === undefined || isFull) {
      last = { messages: [], bytes: 0, firstAppendMs: Date.now() }
      this.#batches.push(last)
    }
    last.messages.push({ key, value, partition: this.partition })
    last.bytes += bytes
    this.nextSeq += 1
  }

  /** The first batch, which from now on does not grow. */
  take(): LaneBatch | undefined {
    if (this.first !== undefined) this.#sealed = true
    return this.first
  }

  /** The first batch is acknowledged. */
  acknowledge(): void {
    this.#batches.shift()
    this.#sealed = false
    this.failures = 0
  }
}
