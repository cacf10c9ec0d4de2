import { closeSync } from 'node:fs'
import { WeirError } from '@weir/core/errors.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import { type Frame, FrameBuffer, type FrameHead, frameAt, headerBytes } from '../format/frame.ts'
import type { JournalState } from '../format/journal-state.ts'
import { segmentHeadBytes } from '../format/segment-files.ts'
import { type Chunk, type CommitGroup, DiskQueue } from './disk-queue.ts'
import { type OpenSegment, SegmentStore, type SegmentStoreOptions } from './segment-store.ts'

/** Holds the largest record; a turn that needs more is written in parts. */
const bufferBytes = 1024 * 1024

/** The part of the bound that only reserved frames may use. */
const reservedShare = 0.2

/** Closes of sums and gap records must fit when nothing else does: ten thousand of them. */
const closingBytes = 1024 * 1024

/**
 * How much of the bound a frame may use. No caller waits for a `background` frame: it is written with the next frame
 * that a caller waits for, or after a round of the event loop, because such records come one by one and a write for
 * each costs more than they do.
 */
export type SpaceClass = 'background' | 'normal' | 'reserved' | 'closing'

/** Where a log of frames is written, and its bound. */
export interface FrameLogOptions extends SegmentStoreOptions {
  readonly state: JournalState
  readonly maxBytes: number
  /** `sync` is called now and then, and nothing is closed without it. */
  readonly isSynced: boolean
}

/** What a log of frames calls. */
export interface FrameLogHooks {
  /** Before a turn is written, to add frames to it. */
  readonly beforeGroupCommit: () => void
  readonly onCommitted: () => void
  /** Frames of failed groups, in order: they are not in the file. */
  readonly onDropped: (frames: readonly Frame[]) => void
}

/** Takes the space of the first two segments. */
export async function openFirstSegment(options: FrameLogOptions) {
  const store = new SegmentStore(options)
  await store.fillSpare()
  const segment = store.next(1)
  if (segment === undefined) {
    const text = `no space for a segment of ${options.segmentBytes} bytes in ${options.directory}`
    throw new WeirError('JOURNAL_UNUSABLE', `${text}. Free some space there, or lower WEIR_JOURNAL_MAX_BYTES.`)
  }
  await store.fillSpare()
  options.state.commit(segment.number, segmentHeadBytes)
  return { store, segment }
}

/** Where a log begins. */
export type FirstSegment = Awaited<ReturnType<typeof openFirstSegment>>

/**
 * Frames in order through segments, within a bound; those of one turn of the event loop in one write. Knows no numbers.
 */
export class FrameLog {
  readonly #options: FrameLogOptions
  readonly #hooks: FrameLogHooks
  readonly #store: SegmentStore
  readonly #queue: DiskQueue
  readonly #free: FrameBuffer[] = []
  readonly #keep: Readonly<Record<SpaceClass, number>>
  readonly #limitBytes: number
  #segment: OpenSegment
  /** Where the next chunk begins. */
  #offset = segmentHeadBytes
  #frames = new FrameBuffer(bufferBytes)
  /** Of earlier groups, whose frames wait in `#frames` for a slow disk. */
  #groups: CommitGroup[] = []
  /** What is appended now belongs to it. */
  #group: CommitGroup = Promise.withResolvers()
  /** The one before. */
  #lastGroup: CommitGroup = Promise.withResolvers()
  /** Of what is in `#frames`, if anybody asked. */
  #outcome: CommitGroup | undefined
  /** Segments that are full; chunks for them may still wait, and they may still have to be synced. */
  #left: OpenSegment[] = []
  #isScheduled = false
  #isScheduledLater = false
  #leftBytes = 0
  #epoch = 1
  #groupMs = 0

  constructor(options: FrameLogOptions, hooks: FrameLogHooks, { store, segment }: FirstSegment) {
    this.#options = options
    this.#hooks = hooks
    this.#store = store
    this.#segment = segment
    // One segment more is filled ahead, and one may be cut short by a record that did not fit.
    this.#limitBytes = options.maxBytes - 2 * options.segmentBytes
    const closing = Math.min(closingBytes, this.#limitBytes / 16)
    const normal = this.#limitBytes * reservedShare
    this.#keep = { background: normal, normal, reserved: closing, closing: 0 }
    this.#queue = new DiskQueue({
      disk: options.disk,
      onCommitted: (chunk) => this.#committed(chunk),
      onDropped: (chunks, cause, error) => this.#dropped(chunks, cause, error),
    })
    this.#lastGroup.resolve(true)
    this.measure()
  }

  get trouble(): 'stalled' | 'disk-error' | undefined {
    return this.#queue.trouble
  }

  get isOutOfSpace(): boolean {
    return this.#store.isOutOfSpace
  }

  /** A write from the main thread would hold up every request. */
  get isSlow(): boolean {
    return !this.#queue.isQuick && this.trouble !== 'disk-error'
  }

  get counters() {
    return this.#queue.counters
  }

  get writeDuration(): Histogram {
    return this.#queue.writeDuration
  }

  get usedBytes(): number {
    return this.#limitBytes - this.#leftBytes
  }

  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Nothing waits to be written. */
  get isIdle(): boolean {
    return this.#frames.length === 0 && this.#queue.isIdle
  }

  /** Whether a small frame of `share` has space. */
  hasSpace(share: SpaceClass): boolean {
    return this.trouble === undefined && this.#leftBytes - bufferBytes / 256 >= this.#keep[share]
  }

  /**
   * A group is all or nothing: if one of its frames finds no space at its end, those that are not on their way to the
   * file are dropped, and `writtenInTime()` is false.
   */
  abortGroup(): void {
    this.#group.resolve(false)
    this.#dropped([], 'full', undefined)
  }

  /** Looks at what the publisher has freed. */
  measure(): void {
    const { state, segmentBytes } = this.#options
    const own = (this.#segment.number - state.get('firstSegment')) * segmentBytes + this.#offset + this.#frames.length
    this.#leftBytes = this.#limitBytes - own - state.get('adoptedBytes')
  }

  /** False when nothing was taken: the share is used up, or the disk does not write. */
  put(head: FrameHead, key: string, keyBytes: number, value: string, textBytes: number, share: SpaceClass): boolean {
    const size = headerBytes + textBytes
    if (this.#leftBytes - size < this.#keep[share] || this.#queue.trouble !== undefined) return false
    if (!this.#makeSpace(size)) return false
    if (this.#frames.length === 0) this.#groupMs = Date.now()
    this.#frames.put(head, this.#groupMs, this.#epoch, key, keyBytes, value, textBytes)
    this.#leftBytes -= size
    if (share === 'background') this.#scheduleLater()
    else this.schedule()
    return true
  }

  #makeSpace(size: number): boolean {
    if (this.#offset + this.#frames.length + size > this.#options.segmentBytes) {
      this.#seal()
      return this.trouble === undefined && !this.#queue.isFull && this.#roll()
    }
    if (this.#frames.hasSpace(size)) return true
    if (this.#queue.isFull) return false
    this.#seal()
    return this.trouble === undefined
  }

  #roll(): boolean {
    const segment = this.#store.next(this.#segment.number + 1)
    if (segment === undefined) {
      void this.#store.fillSpare()
      return false
    }
    this.#left.push(this.#segment)
    this.#segment = segment
    this.#offset = segmentHeadBytes
    this.measure()
    void this.#store.fillSpare()
    return true
  }

  /** Hands the frames gathered so far to the disk. The groups of all but a last part end with that part. */
  #seal(): void {
    const frames = this.#frames
    if (frames.length === 0) return
    const outcome = this.#outcome
    const chunk: Chunk = { frames, segment: this.#segment, offset: this.#offset, groups: this.#groups, outcome }
    this.#offset += frames.length
    this.#groups = []
    this.#outcome = undefined
    this.#frames = this.#free.pop() ?? new FrameBuffer(bufferBytes)
    this.#queue.push(chunk)
  }

  /** Once a group; runs after all the promise callbacks that append. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    process.nextTick(this.#endGroup)
  }

  #scheduleLater(): void {
    if (this.#isScheduled || this.#isScheduledLater) return
    this.#isScheduledLater = true
    setImmediate(() => {
      if (this.#isScheduledLater) this.schedule()
    })
  }

  readonly #endGroup = (): void => {
    this.#isScheduled = false
    this.#isScheduledLater = false
    this.#hooks.beforeGroupCommit()
    const group = this.#group
    this.#group = Promise.withResolvers()
    this.#lastGroup = group
    if (this.#frames.length === 0) {
      // What the turn appended went with an earlier part, or was dropped, which has ended the turn.
      this.#queue.endWithLast(group)
      return
    }
    this.#options.crash('journal_due')
    this.#groups.push(group)
    // To a slow disk goes what has gathered, once it has taken what was before.
    if (this.#queue.isIdle) this.#seal()
  }

  /** See `RecordLog.writtenInTime`. */
  writtenInTime(): Promise<boolean> {
    if (this.#isScheduledLater) this.schedule()
    return (this.#isScheduled ? this.#group : this.#lastGroup).promise
  }

  /** See `RecordLog.finallyWritten`. What was put last is always among the frames that gather. */
  finallyWritten(): Promise<boolean> {
    if (this.#frames.length === 0) return Promise.resolve(true)
    this.#outcome ??= Promise.withResolvers()
    return this.#outcome.promise
  }

  #committed({ frames, segment, offset, outcome }: Chunk): void {
    this.#options.crash('journal_written')
    this.#options.state.commit(segment.number, offset + frames.length)
    frames.length = 0
    if (this.#free.length < 2) this.#free.push(frames)
    this.#hooks.onCommitted()
    outcome?.resolve(true)
    if (this.#queue.isIdle && this.#frames.length > 0 && !this.#isScheduled) this.#seal()
  }

  /** All that is not in the file is forgotten, and the next frame stands where the first of it would have. */
  #dropped(chunks: readonly Chunk[], cause: 'stalled' | 'disk-error' | 'full', error: unknown): void {
    const texts = [...chunks.map(({ frames }) => frames), this.#frames]
    const dropped = texts.flatMap(framesIn)
    const first = chunks[0]
    if (first !== undefined) {
      if (first.segment !== this.#segment) this.#left.push(this.#segment)
      this.#segment = first.segment
      this.#left = this.#left.filter((one) => one !== first.segment)
      this.#offset = first.offset
    }
    this.#epoch += 1
    for (const group of this.#groups.splice(0)) group.resolve(false)
    if (this.#isScheduled) this.#group.resolve(false)
    this.#hooks.onDropped(dropped)
    this.#frames.length = 0
    for (const { outcome } of chunks) outcome?.resolve(false)
    this.#outcome?.resolve(false)
    this.#outcome = undefined
    this.measure()
    this.#options.log.error(
      { cause, records: dropped.length, ...(error === undefined ? {} : { reason: String(error) }) },
      'the journal could not be written',
    )
  }

  /** Called every tick: tries a disk that failed again, and fills the next segment. */
  poll(): void {
    this.measure()
    void this.#store.fillSpare()
    const length = Math.min(4_096, this.#options.segmentBytes - this.#offset)
    void this.#queue.probe(this.#segment, this.#offset, length)
    if (!this.#options.isSynced) this.#closeLeft(this.#left)
  }

  /** Pushes what was written to the disk itself. */
  async sync(): Promise<void> {
    const left = [...this.#left]
    for (const { fd } of [...left, this.#segment]) await this.#options.disk.sync(fd)
    this.#closeLeft(left)
  }

  #closeLeft(left: readonly OpenSegment[]): void {
    if (!this.#queue.isIdle) return
    for (const segment of left) {
      if (!this.#left.includes(segment)) continue
      this.#left = this.#left.filter((one) => one !== segment)
      closeSync(segment.fd)
    }
  }

  /** Waits for what is under way, at most until the disk is given up; then closes. */
  async close(): Promise<boolean> {
    this.schedule()
    const isWritten = await this.writtenInTime()
    if (this.#options.isSynced && isWritten) await this.sync()
    this.#store.close()
    if (this.#queue.isIdle) for (const { fd } of [...this.#left, this.#segment]) closeSync(fd)
    return isWritten && this.trouble === undefined
  }
}

/** Out of a buffer that did not reach the file; copies, for the buffer is used again. */
function framesIn({ bytes, length }: FrameBuffer): Frame[] {
  const all = Buffer.from(bytes.subarray(0, length))
  const frames: Frame[] = []
  for (let at = 0; at < length; ) {
    const found = frameAt(all, at)
    if (found.kind !== 'frame') throw new Error(`no frame at ${at} of a buffer that was not written`)
    frames.push(found.frame)
    at = found.next
  }
  return frames
}
