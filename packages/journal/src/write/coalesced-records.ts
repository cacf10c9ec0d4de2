import { performance } from 'node:perf_hooks'
import { type Frame, frameKinds } from '../format/frame.ts'
import type { CoalescedRecord } from '../record-log.ts'
import type { FrameLog } from './frame-log.ts'
import { bytesOf, type SequenceAllocator } from './sequence-allocator.ts'

/** Coalesced records that may be open; more different denials in a second are refused as when the journal is full. */
const openMax = 4_096

/** From its opening to its close; the records of a flood are to be seen within seconds. */
const openMs = 1_000

/** The key of a frame has 16 bits for its length. Longer states stay those of before. */
const latestBytesMax = 65_535

/** How long before its opening a line may have been made; more would only hold up the watermark. */
const lineAgeMs = 50

/** A coalesced record that is open, or about to be closed. */
interface Sum {
  readonly number: number
  readonly topic: number
  readonly key: string
  /** See `RecordLog.openCoalesced`. */
  readonly latest: (() => string) | undefined
  /** By the wall clock, for the watermark: its record bears this time. */
  readonly openedMs: number
  /** By the clock that is never set. */
  readonly openedTick: number
  /** Counted in this turn and not yet in a frame. */
  pendingCount: number
  /** In frames. */
  count: number
  isOpen: boolean
}

/**
 * Coalesced records on their way: opened by a frame that bears the line, added to by at most one small frame a group,
 * closed after a second by one that gives the number. Every step is in the file before what it counts is answered.
 */
export class CoalescedRecords {
  readonly #frames: FrameLog
  readonly #sequences: SequenceAllocator
  #open = new Map<number, Sum>()
  /** Closed by frames that may not be in the file yet. */
  readonly #closing = new Map<number, Sum>()
  #touched: Sum[] = []
  /** Of what was counted in this turn, where somebody asks. */
  #outcome: PromiseWithResolvers<boolean> | undefined
  #last = 0
  /** How many have become records. */
  closed = 0

  constructor(frames: FrameLog, sequences: SequenceAllocator) {
    this.#frames = frames
    this.#sequences = sequences
  }

  /** See `RecordLog.openCoalesced`. */
  open(topic: number, key: string, before: string, after: string, latest?: () => string): CoalescedRecord | undefined {
    if (this.#open.size >= openMax) return undefined
    const number = this.#last + 1
    const value = `${before}\0${after}`
    const keyBytes = bytesOf(key)
    const head = { kind: frameKinds.sumOpen, topic, partition: 0, seq: number }
    const share = latest === undefined ? 'normal' : 'reserved'
    if (!this.#frames.put(head, key, keyBytes, value, keyBytes + Buffer.byteLength(value), share)) return undefined
    this.#last = number
    const opened = { openedMs: Date.now(), openedTick: performance.now() }
    const counts = { pendingCount: 0, count: 0, isOpen: true }
    const sum: Sum = { number, topic, key, latest, ...opened, ...counts }
    this.#open.set(number, sum)
    return { add: (count = 1) => this.#add(sum, count), finallyWritten: this.#finallyWritten }
  }

  #add(sum: Sum, count: number): boolean {
    if (!sum.isOpen || !this.#frames.hasSpace('reserved')) return false
    if (sum.pendingCount === 0) this.#touched.push(sum)
    sum.pendingCount += count
    this.#frames.schedule()
    return true
  }

  /** One promise for all that is counted in a turn: what the journal loses is the end of it. */
  readonly #finallyWritten = (): Promise<boolean> => {
    this.#outcome ??= Promise.withResolvers()
    return this.#outcome.promise
  }

  /**
   * At a turn's end: a frame for each sum that was added to. False when one found no space: then the turn must be
   * dropped.
   */
  putCounts(): boolean {
    if (this.#touched.length === 0) return true
    const sums = this.#takeTouched()
    if (sums.every((sum) => this.#putCount(sum))) {
      if (this.#outcome !== undefined) void this.#frames.finallyWritten().then(this.#outcome.resolve)
      this.#outcome = undefined
      return true
    }
    // For `rollBack`, which comes next.
    this.#touched = sums.filter(({ pendingCount }) => pendingCount > 0)
    return false
  }

  #takeTouched(): Sum[] {
    return this.#touched.splice(0)
  }

  #putCount(sum: Sum): boolean {
    if (sum.pendingCount === 0) return true
    const value = String(sum.pendingCount)
    const head = { kind: frameKinds.sumAdd, topic: sum.topic, partition: 0, seq: sum.number }
    if (!this.#frames.put(head, '', 0, value, value.length, 'closing')) return false
    sum.count += sum.pendingCount
    sum.pendingCount = 0
    return true
  }

  /** Closes those that are due, oldest first; false when one found no space, which a later call tries again. */
  close(isAll: boolean): boolean {
    const nowTick = performance.now()
    for (const sum of this.#open.values()) {
      if (!isAll && nowTick - sum.openedTick < openMs) continue
      if (!this.#putCount(sum) || !this.#putEnd(sum)) return false
      sum.isOpen = false
      this.#open.delete(sum.number)
      this.#closing.set(sum.number, sum)
    }
    return true
  }

  /** What is known of a sum by now, with its bytes; the last space is for the counts themselves. */
  #latestOf({ latest }: Sum): readonly [string, number] {
    const text = this.#frames.hasSpace('reserved') ? (latest?.() ?? '') : ''
    const bytes = Buffer.byteLength(text)
    return bytes > latestBytesMax ? ['', 0] : [text, bytes]
  }

  #putEnd(sum: Sum): boolean {
    const { count, topic, key, number } = sum
    if (count === 0) {
      const value = String(number)
      const head = { kind: frameKinds.sumDrop, topic, partition: 0, seq: number }
      return this.#frames.put(head, '', 0, value, value.length, 'closing')
    }
    if (!this.#sequences.putClose(topic, key, number, this.#latestOf(sum))) return false
    this.closed += 1
    return true
  }

  /** All frames are in the file. */
  committed(): void {
    this.#closing.clear()
  }

  /** What did not reach the file never was; how many decisions of `topic` that takes back from sums. */
  rollBack(frames: readonly Frame[], topic: number): number {
    const touched = this.#takeTouched()
    let missed = 0
    for (const sum of touched) {
      if (sum.topic === topic) missed += sum.pendingCount
      sum.pendingCount = 0
    }
    this.#outcome?.resolve(false)
    this.#outcome = undefined
    for (const frame of frames) if (this.#rollBackFrame(frame) && frame.topic === topic) missed += numberIn(frame)
    // In the order of their opening again: the watermark and the closes look at the oldest first.
    this.#open = new Map([...this.#open].sort(([a], [b]) => a - b))
    return missed
  }

  /** True for an addition. */
  #rollBackFrame(frame: Frame): boolean {
    const number = frame.kind === frameKinds.sumClose ? numberIn(frame) : frame.seq
    const sum = this.#open.get(number) ?? this.#closing.get(number)
    switch (frame.kind) {
      case frameKinds.sumOpen:
        if (sum !== undefined) sum.isOpen = false
        this.#open.delete(number)
        return false
      case frameKinds.sumAdd:
        if (sum !== undefined) sum.count -= numberIn(frame)
        return true
      case frameKinds.sumClose:
      case frameKinds.sumDrop:
        // Due again. Without an open frame either, it ends as one that counted nothing.
        if (sum !== undefined) this.#open.set(number, sum)
        if (frame.kind === frameKinds.sumClose) this.closed -= 1
        return false
      default:
        return false
    }
  }

  /** Returns the earliest time that the record of an open sum can have. */
  get oldestMs(): number {
    const [first] = this.#open.values()
    return first === undefined ? Number.POSITIVE_INFINITY : first.openedMs - lineAgeMs
  }
}

const numberIn = ({ value }: Frame): number => Number(value.toString('latin1'))
