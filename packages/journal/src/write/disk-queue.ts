import { performance } from 'node:perf_hooks'
import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import type { FrameBuffer } from '../format/frame.ts'
import type { Disk } from './disk.ts'
import type { OpenSegment } from './segment-store.ts'

/** All who wait for what one turn of the event loop appended: whether it was written. */
export type CommitGroup = PromiseWithResolvers<boolean>

/** Frames with their place, and the groups that end when they are written. */
export interface Chunk {
  readonly frames: FrameBuffer
  readonly segment: OpenSegment
  readonly offset: number
  readonly groups: CommitGroup[]
  /** Resolves with the final outcome of the frames, for callers of `finallyWritten`. */
  readonly outcome?: CommitGroup | undefined
}

/**
 * A write from the main thread that takes longer has held up every request; the next ones go through the thread pool.
 */
const slowMs = 20

/**
 * A write that so many polls in a row find under way is stalled, after 250 ms: what was decided meanwhile is answered
 * as if the journal were full. Polls, because a process that was stopped or busy runs its due timers before it learns
 * of a write that is done: that is one poll.
 */
const stalledPolls = 5
const pollMs = 50

/**
 * Waiting for the disk at most, of a megabyte each: what comes in 250 ms at ten times the rate that one process decides
 * at.
 */
const chunksMax = 8

/** The disk, and what is called once chunks are in the file or never will be. */
export interface DiskQueueOptions {
  readonly disk: Disk
  /** In order. */
  readonly onCommitted: (chunk: Chunk) => void
  /** Chunks that are not in the file and never will be, in order; their groups have ended with false. */
  readonly onDropped: (chunks: readonly Chunk[], cause: 'stalled' | 'disk-error', error?: unknown) => void
}

/**
 * Writes chunks in order. Quick: immediately, on this thread. Slow, after a write that took too long: one at a time
 * through the thread pool, until one is quick again. Stalled: the one under way is overdue; what waits behind it is
 * dropped and nothing is taken. Failed: the disk refused; all is dropped and nothing is taken until a write of zeros
 * there succeeds.
 */
export class DiskQueue {
  readonly #options: DiskQueueOptions
  readonly #waiting: Chunk[] = []
  #isQuick = true
  #isUnderWay = false
  #isProbing = false
  trouble: 'stalled' | 'disk-error' | undefined
  readonly counters = { writes: 0, slowWrites: 0, failedWrites: 0 }
  readonly writeDuration = new Histogram(buckets.decision)

  constructor(options: DiskQueueOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0
  }

  /** While it is false, small groups are gathered into one write. */
  get isQuick(): boolean {
    return this.#isQuick
  }

  get isFull(): boolean {
    return this.#waiting.length >= chunksMax
  }

  /** A turn that has nothing of its own to write ends with what is under way, or immediately. */
  endWithLast(group: CommitGroup): void {
    const last = this.#waiting.at(-1)
    if (last === undefined || this.trouble !== undefined) group.resolve(this.trouble === undefined)
    else last.groups.push(group)
  }

  push(chunk: Chunk): void {
    this.#waiting.push(chunk)
    // The write under way takes it next: no two write at a time, because a buffer is used again once it is written.
    if (!this.#isUnderWay) this.#write()
  }

  #write(): void {
    if (this.#isQuick) this.#writeNow()
    // Also what a write that was slow has left.
    if (!this.#isQuick && this.#waiting.length > 0) void this.#writeLater()
  }

  #writeNow(): void {
    this.#isUnderWay = true
    for (let chunk = this.#waiting[0]; chunk !== undefined && this.#isQuick; chunk = this.#waiting[0]) {
      const startMs = performance.now()
      const { frames, segment, offset } = chunk
      try {
        for (let done = 0; done < frames.length; ) {
          const took = this.#options.disk.writeSync(segment.fd, frames.bytes, done, frames.length - done, offset + done)
          if (took === 0) throw new Error('the disk accepts no bytes')
          done += took
        }
      } catch (error) {
        this.#fail(error)
        break
      }
      this.#measure(performance.now() - startMs)
      this.#commit()
    }
    this.#isUnderWay = false
  }

  async #writeLater(): Promise<void> {
    this.#isUnderWay = true
    for (let chunk = this.#waiting[0]; chunk !== undefined && !this.#isQuick; chunk = this.#waiting[0]) {
      const startMs = performance.now()
      let polls = 0
      const polling = setInterval(() => {
        polls += 1
        if (polls === stalledPolls) this.#stall()
      }, pollMs)
      try {
        await this.#writeAll(chunk)
      } catch (error) {
        this.#fail(error)
        break
      } finally {
        clearInterval(polling)
      }
      this.trouble = undefined
      this.#measure(performance.now() - startMs)
      this.#commit()
    }
    this.#isUnderWay = false
    this.#write()
  }

  async #writeAll({ frames, segment, offset }: Chunk): Promise<void> {
    for (let done = 0; done < frames.length; ) {
      const took = await this.#options.disk.write(segment.fd, frames.bytes, done, frames.length - done, offset + done)
      if (took === 0) throw new Error('the disk accepts no bytes')
      done += took
    }
  }

  #measure(tookMs: number): void {
    this.counters.writes += 1
    this.writeDuration.observe(tookMs / 1_000)
    this.#isQuick = tookMs <= slowMs
    if (!this.#isQuick) this.counters.slowWrites += 1
  }

  #commit(): void {
    const chunk = this.#waiting.shift()
    if (chunk === undefined) return
    this.#options.onCommitted(chunk)
    for (const group of chunk.groups) group.resolve(true)
  }

  #stall(): void {
    this.trouble = 'stalled'
    const [underWay] = this.#waiting
    for (const group of underWay?.groups ?? []) group.resolve(false)
    this.#drop(this.#waiting.splice(1), 'stalled')
  }

  #fail(error: unknown): void {
    this.trouble = 'disk-error'
    this.#isQuick = false
    this.counters.failedWrites += 1
    this.#drop(this.#waiting.splice(0), 'disk-error', error)
  }

  #drop(chunks: readonly Chunk[], cause: 'stalled' | 'disk-error', error?: unknown): void {
    for (const { groups } of chunks) for (const group of groups) group.resolve(false)
    this.#options.onDropped(chunks, cause, error)
  }

  /**
   * After a failure, writes zeros where the next frame will stand; they also wipe out what a failed write may have left
   * there.
   */
  async probe(segment: OpenSegment, offset: number, length: number): Promise<void> {
    if (this.trouble !== 'disk-error' || this.#isProbing || this.#isUnderWay) return
    this.#isProbing = true
    try {
      const took =
        length === 0 ? 0 : await this.#options.disk.write(segment.fd, Buffer.alloc(length), 0, length, offset)
      if (took === length) this.trouble = undefined
    } catch {
      // Still refused; the next tick asks again.
    } finally {
      this.#isProbing = false
    }
  }
}
