import { partitionOf } from '@weir/kafka/partition.ts'
import { type Frame, frameKinds, isNumbered } from '../format/frame.ts'
import type { JournalTopic } from '../format/state-files.ts'
import type { FrameLog, SpaceClass } from './frame-log.ts'

/** A topic of the journal that is written. */
interface NumberedTopic {
  readonly name: string
  partitions: number
  /** By partition: the number that the next record takes. */
  readonly next: number[]
}

/** The bytes of a key that is plain ASCII are its length; to count is quicker here than to call. */
export function bytesOf(key: string): number {
  for (let at = 0; at < key.length; at += 1) if (key.charCodeAt(at) > 0x7f) return Buffer.byteLength(key)
  return key.length
}

/** Gives every record its partition and its number, contiguous there, in the moment that it is put into the journal. */
export class SequenceAllocator {
  readonly #frames: FrameLog
  readonly #beforeSeq: string
  readonly #topics: readonly NumberedTopic[]

  constructor(journal: string, topics: readonly JournalTopic[], frames: FrameLog) {
    this.#frames = frames
    this.#beforeSeq = `,"journal":"${journal}","seq":`
    this.#topics = topics.map(({ name, partitions }) => ({ name, partitions, next: [] }))
  }

  get topics(): readonly JournalTopic[] {
    return this.#topics
  }

  /** Numbers given, less those that were taken back. */
  get given(): number {
    let count = 0
    for (const { next } of this.#topics) for (const seq of next) count += seq ?? 0
    return count
  }

  #topic(index: number): NumberedTopic {
    const topic = this.#topics[index]
    if (topic === undefined) throw new RangeError(`no topic ${index} in this journal`)
    return topic
  }

  /**
   * Puts a line, open for journal and number, under the next number of its key's partition. False when the journal did
   * not take it.
   */
  putRecord(kind: 1 | 6, index: number, key: string, text: string, share: SpaceClass): boolean {
    const topic = this.#topic(index)
    const partition = partitionOf(key, topic.partitions)
    const seq = topic.next[partition] ?? 0
    const tail = `${this.#beforeSeq}${seq}}`
    const keyBytes = bytesOf(key)
    const textBytes = keyBytes + Buffer.byteLength(text) + tail.length
    const head = { kind, topic: index, partition, seq }
    if (!this.#frames.put(head, key, keyBytes, text + tail, textBytes, share)) return false
    topic.next[partition] = seq + 1
    return true
  }

  /**
   * Makes a sum a record: it takes the next number of its key's partition. `latest` is what is known of it by now, with
   * its bytes.
   */
  putClose(index: number, key: string, sum: number, [latest, bytes]: readonly [string, number]): boolean {
    const topic = this.#topic(index)
    const partition = partitionOf(key, topic.partitions)
    const seq = topic.next[partition] ?? 0
    const value = String(sum)
    const head = { kind: frameKinds.sumClose, topic: index, partition, seq }
    if (!this.#frames.put(head, latest, bytes, value, bytes + value.length, 'closing')) return false
    topic.next[partition] = seq + 1
    return true
  }

  /** Frames that did not reach the file never existed: their sequence numbers are assigned again. */
  rollBack(frames: readonly Frame[]): void {
    for (const { topic, partition, seq } of frames.filter(isNumbered)) {
      const { next } = this.#topic(topic)
      next[partition] = Math.min(seq, next[partition] ?? seq)
    }
  }

  /** False when it is so already. */
  setPartitions(index: number, partitions: number): boolean {
    const topic = this.#topic(index)
    if (topic.partitions === partitions) return false
    topic.partitions = partitions
    return true
  }
}
