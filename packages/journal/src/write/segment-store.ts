import { constants, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { segmentHeadBytes, segmentMagic, segmentPath, spareName } from '../format/segment-files.ts'
import type { Disk } from './disk.ts'

/** Written in one piece when a spare is filled, by the thread pool: a larger piece would occupy it for long. */
const zeros = Buffer.alloc(1024 * 1024)

/** A segment that is being written. */
export interface OpenSegment {
  readonly number: number
  readonly fd: number
}

/** What segments are made of, and where. */
export interface SegmentStoreOptions {
  readonly directory: string
  readonly segmentBytes: number
  readonly disk: Disk
  readonly log: Logger
  readonly crash: CrashPoint
}

/**
 * The segments of the directory that is written. The next one is filled with zeros ahead of time, off the main thread:
 * so the space is there before a record needs it, and what was never written reads as zeros.
 */
export class SegmentStore {
  readonly #options: SegmentStoreOptions
  #spare: 'none' | 'ready' | 'failed' = 'none'
  #isFilling = false
  #isClosed = false

  constructor(options: SegmentStoreOptions) {
    this.#options = options
  }

  /** The disk had no space for the next segment when last asked. */
  get isOutOfSpace(): boolean {
    return this.#spare === 'failed'
  }

  /** Fills the spare if there is none. Whether it worked shows in `isOutOfSpace`. */
  async fillSpare(): Promise<void> {
    if (this.#isClosed || this.#isFilling || this.#spare === 'ready') return
    this.#isFilling = true
    const path = join(this.#options.directory, spareName)
    try {
      await this.#fill(path)
      this.#spare = 'ready'
    } catch (error) {
      this.#outOfSpace(error)
      // It may hold the last free block, which the publisher needs before it can delete segments. A disk that keeps it
      // is asked again.
      await rm(path, { force: true }).catch(() => undefined)
    } finally {
      this.#isFilling = false
    }
  }

  async #fill(path: string): Promise<void> {
    const file = await open(path, 'w', 0o600)
    try {
      for (let at = 0; at < this.#options.segmentBytes && !this.#isClosed; ) {
        const took = await this.#options.disk.write(
          file.fd,
          zeros,
          0,
          Math.min(zeros.length, this.#options.segmentBytes - at),
          at,
        )
        if (took === 0) throw new Error('the disk accepts no bytes')
        at += took
      }
    } finally {
      await file.close()
    }
  }

  /** Fills no more. A file that is being filled is finished, and becomes no segment. */
  close(): void {
    this.#isClosed = true
  }

  #outOfSpace(error: unknown): void {
    if (this.#spare !== 'failed')
      this.#options.log.error({ reason: String(error) }, 'no space for the next journal segment')
    this.#spare = 'failed'
  }

  /**
   * Opens the segment of this number. Without a spare yet, because records came faster than zeros, it is made without
   * reserved space. Undefined when the disk has no space for it; another call for the same number goes on where this
   * one failed.
   */
  next(number: number): OpenSegment | undefined {
    if (this.isOutOfSpace) return undefined
    try {
      const path = segmentPath(this.#options.directory, number)
      if (this.#spare === 'ready') {
        renameSync(join(this.#options.directory, spareName), path)
        this.#spare = 'none'
      }
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
      ftruncateSync(fd, this.#options.segmentBytes)
      const head = Buffer.alloc(segmentHeadBytes)
      segmentMagic.copy(head)
      head.writeUInt32LE(number, segmentMagic.length)
      writeSync(fd, head, 0, head.length, 0)
      this.#options.crash('journal_segment')
      return { number, fd }
    } catch (error) {
      this.#outOfSpace(error)
      return undefined
    }
  }
}
