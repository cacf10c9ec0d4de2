import { closeSync, fstatSync, openSync, readSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { type Frame, frameAt } from '../format/frame.ts'
import type { Position } from '../format/journal-state.ts'
import { segmentHeadBytes, segmentMagic, segmentPath, segmentsIn, spareName } from '../format/segment-files.ts'

/** Read in one call; a frame that is longer gets a buffer of its own. */
const chunkBytes = 256 * 1024

/** A frame may begin with so many zeros, less one. */
const lengthBytes = 4

/**
 * A position at which neither a frame nor the end of what was written stands: a machine's death, or a disk that lost
 * something.
 */
export interface CorruptRange {
  readonly segment: number
  readonly offset: number
  /** Up to the next whole frame, or the end. */
  readonly bytes: number
}

/** A frame and the segment that it stands in. */
export interface LocatedFrame {
  readonly frame: Frame
  readonly segment: number
}

/**
 * Frames of a directory in order, up to a committed position, or to the end of a dead one. What cannot be read is
 * passed over up to the next whole frame and reported, except at the very end, where a write was cut off before its
 * records were answered.
 */
export class FrameSource {
  readonly #directory: string
  readonly damage: CorruptRange[] = []
  #segment: number
  #offset = segmentHeadBytes
  #fd: number | undefined
  #size = 0
  #epoch = 0
  #bytes = Buffer.alloc(0)
  /** Where `#bytes` begins in the segment. */
  #bytesAt = 0

  /** From the oldest segment that is there, or from another. */
  constructor(directory: string, from = segmentsIn(directory)[0]) {
    this.#directory = directory
    this.#segment = from ?? 1
  }

  /** Frames before it have been read. */
  get position(): Position {
    return { segment: this.#segment, offset: this.#offset }
  }

  /** The next frame before `committed`, or before the end of a dead directory; undefined when there is none. */
  next(committed: Position | undefined): LocatedFrame | undefined {
    for (;;) {
      const isPast = committed !== undefined && this.#segment === committed.segment && this.#offset >= committed.offset
      if (isPast) return undefined
      if (this.#fd === undefined && !this.#open()) {
        // Deleted meanwhile, for Kafka has it, by the process whose journal is only looked at here.
        if (committed !== undefined || !this.#leave()) return undefined
        continue
      }
      const end = committed?.segment === this.#segment ? Math.min(committed.offset, this.#size) : this.#size
      const found = this.#frameBefore(end)
      if (found !== undefined) return found
      // Only the last segment of what was written ends in the middle.
      if (committed?.segment === this.#segment || !this.#leave()) return undefined
    }
  }

  #frameBefore(end: number): LocatedFrame | undefined {
    while (this.#offset < end) {
      const frame = this.#frameHere(end)
      if (frame === 'end') return undefined
      // A remainder of a write that failed and was given up.
      if (frame.epoch >= this.#epoch) {
        this.#epoch = frame.epoch
        return { frame, segment: this.#segment }
      }
    }
    return undefined
  }

  /** Steps over it. */
  #frameHere(end: number): Frame | 'end' {
    const found = this.#look(this.#offset, end)
    if (found.kind === 'frame') {
      this.#offset += found.next
      return found.frame
    }
    if (found.kind !== 'damaged' && this.#firstNonZero(this.#offset, end) === end) return 'end'
    const from = this.#offset
    for (this.#offset += 1; this.#offset < end; this.#offset += 1) {
      const later = this.#look(this.#offset, end)
      if (later.kind === 'zeros')
        this.#offset = Math.max(this.#offset, this.#firstNonZero(this.#offset, end) - lengthBytes)
      if (later.kind !== 'frame' || later.frame.epoch < this.#epoch) continue
      this.damage.push({ segment: this.#segment, offset: from, bytes: this.#offset - from })
      this.#offset += later.next
      return later.frame
    }
    this.#offset = end
    this.#cutOff = { segment: this.#segment, offset: from, bytes: end - from }
    return 'end'
  }

  /** Of the segment that is read: what follows its last whole frame and is not zeros. */
  #cutOff: CorruptRange | undefined

  /** What follows the last whole frame of all: a write that was cut off. No request was answered for what was in it. */
  get tornTail(): CorruptRange | undefined {
    return this.#cutOff
  }

  #look(offset: number, end: number): ReturnType<typeof frameAt> {
    this.#fill(offset, chunkBytes, end)
    let found = frameAt(this.#bytes, offset - this.#bytesAt)
    if (found.kind === 'short' && this.#bytesAt + this.#bytes.length < end) {
      this.#fill(offset, Math.max(chunkBytes, found.bytes), end, true)
      found = frameAt(this.#bytes, offset - this.#bytesAt)
    }
    return found.kind === 'frame' ? { ...found, next: found.next - (offset - this.#bytesAt) } : found
  }

  /**
   * Makes sure that something at `offset` is at hand; in a buffer that is never written again, for frames are views of
   * it.
   */
  #fill(offset: number, size: number, end: number, isRefilled = false): void {
    const has = offset >= this.#bytesAt && offset < this.#bytesAt + this.#bytes.length
    if ((has && !isRefilled) || this.#fd === undefined) return
    const bytes = Buffer.allocUnsafeSlow(Math.min(size, end - offset))
    let length = 0
    for (let took = -1; took !== 0 && length < bytes.length; length += took)
      took = readSync(this.#fd, bytes, length, bytes.length - length, offset + length)
    this.#bytes = bytes.subarray(0, length)
    this.#bytesAt = offset
  }

  #firstNonZero(from: number, end: number): number {
    for (let at = from; at < end; at = this.#bytesAt + this.#bytes.length) {
      this.#fill(at, chunkBytes, end)
      const start = at - this.#bytesAt
      if (this.#bytes.length === 0) return end
      if (this.#bytes.subarray(start).equals(zeros.subarray(0, this.#bytes.length - start))) continue
      for (let index = start; index < this.#bytes.length; index += 1)
        if (this.#bytes[index] !== 0) return this.#bytesAt + index
    }
    return end
  }

  #open(): boolean {
    try {
      this.#fd = openSync(segmentPath(this.#directory, this.#segment), 'r')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    }
    this.#size = fstatSync(this.#fd).size
    const head = Buffer.alloc(segmentHeadBytes)
    readSync(this.#fd, head, 0, segmentHeadBytes, 0)
    refuseOtherLayout(head, this.#directory)
    return true
  }

  /** To the next segment, if there is one. */
  #leave(): boolean {
    const next = segmentsIn(this.#directory).find((number) => number > this.#segment)
    if (next === undefined) return false
    if (this.#cutOff !== undefined) this.damage.push(this.#cutOff)
    this.#cutOff = undefined
    this.close()
    this.#segment = next
    this.#offset = segmentHeadBytes
    this.#bytes = Buffer.alloc(0)
    return true
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }
}

/**
 * A head of zeros, or a damaged one, is none: its process died before a frame could be written, or the frames speak for
 * themselves.
 */
function refuseOtherLayout(head: Buffer, directory: string): void {
  const version = segmentMagic.length - 1
  const isOurs = head[version] === segmentMagic[version] || head.compare(segmentMagic, 0, version, 0, version) !== 0
  if (isOurs) return
  throw new WeirError(
    'JOURNAL_UNUSABLE',
    `${directory} was written by another version of Weir. Let that version send it.`,
  )
}

/** More than any chunk, but for that of a longer frame. */
const zeros = Buffer.alloc(4 * 1024 * 1024)

/**
 * Gives back the space that a dead process had taken ahead; else a process that dies every few seconds would fill the
 * disk with zeros.
 */
export function trimOrphan(directory: string): void {
  rmSync(join(directory, spareName), { force: true })
  const last = segmentsIn(directory).at(-1)
  if (last === undefined) return
  const source = new FrameSource(directory, last)
  while (source.next(undefined) !== undefined);
  truncateSync(segmentPath(directory, last), source.position.offset)
  source.close()
}
