import { dirname } from 'node:path'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { DirectoryLock } from '../directory/directory.ts'
import { type Frame, frameKinds } from '../format/frame.ts'
import { JournalState } from '../format/journal-state.ts'
import { type JournalTopic, writeTopics } from '../format/state-files.ts'
import type { RecordLog } from '../record-log.ts'
import { CoalescedRecords } from './coalesced-records.ts'
import { type Disk, realDisk } from './disk.ts'
import { type FirstSegment, FrameLog, type FrameLogOptions, openFirstSegment } from './frame-log.ts'
import { SequenceAllocator } from './sequence-allocator.ts'
import { UnrecordedCounter } from './unrecorded-counter.ts'

/** Why the journal takes nothing at present. */
export type JournalTrouble = 'full' | 'stalled' | 'disk-error' | 'taken-away' | 'closed'

/** Of all topics together, since the process started. */
export interface JournalCounters {
  /**
   * Records, closed sums and gap records that stand in the journal, or are about to: what Kafka is to have in the end.
   */
  readonly numbered: number
  /** Decisions that the journal was given and does not have: counted in its gap file. */
  readonly gaps: number
  readonly writes: number
  /** Writes that took longer than the watchdog allows. */
  readonly slowWrites: number
  readonly failedWrites: number
}

/** What a directory is written with. */
export interface WriterOptions {
  /** The first is that of decisions: only they count in the gap file. */
  readonly topics: readonly JournalTopic[]
  /** Of all segments, and of directories adopted. */
  readonly maxBytes: number
  /**
   * Milliseconds between syncs to the disk; undefined leaves it to the kernel: then only the machine's death loses
   * anything.
   */
  readonly fsyncMs?: number | undefined
  readonly log: Logger
  readonly crash?: CrashPoint
  /**
   * Called when another process has taken the directory over: what is appended now is lost. The process has to restart.
   */
  readonly onTakenAway?: () => void
  /** Given by tests and benches only. */
  readonly segmentBytes?: number
  readonly disk?: Disk
}

/** How often coalesced records close, the watermark rises, and a disk in trouble is tried again. */
const tickMs = 250

/** The number of ticks between two checks that the directory is still there. */
const ticksPerPoll = 4

/** Preallocated in a few milliseconds, and at 10,000 records a second full after three seconds. */
const segmentBytesMax = 16 * 1024 * 1024

/** Space for two of the largest records. */
const segmentBytesMin = 2 * 1024 * 1024

const decisions = 0

/** In a text within a line quotes are escaped. */
const countIn = /,"count":(\d+),/

/** How many decisions a record stands for: a correction for none. */
const decisionsIn = (line: string): number => Number(countIn.exec(line)?.[1] ?? 1)

/** Writes one directory, on the main thread. */
export class JournalWriter {
  readonly journal: string
  /** To be handed to the publisher's thread: `state.shared`. */
  readonly state: JournalState
  readonly maxBytes: number
  readonly #directory: DirectoryLock
  readonly #options: WriterOptions
  readonly #frames: FrameLog
  readonly #sequences: SequenceAllocator
  readonly #coalesced: CoalescedRecords
  readonly #unrecorded: UnrecordedCounter
  readonly #timers: NodeJS.Timeout[] = []
  #ticks = 0
  #isSyncing = false
  #ended: 'taken-away' | 'closed' | undefined
  #closed: Promise<boolean> | undefined
  /** By topic. */
  readonly #appended: number[]
  readonly #refused: number[]

  constructor(directory: DirectoryLock, options: WriterOptions, frameOptions: FrameLogOptions, first: FirstSegment) {
    const { journal, path } = directory
    const { log, crash = noCrash } = options
    this.journal = journal
    this.state = frameOptions.state
    this.maxBytes = options.maxBytes
    this.#directory = directory
    this.#options = options
    this.#appended = options.topics.map(() => 0)
    this.#refused = options.topics.map(() => 0)
    const hooks = {
      beforeGroupCommit: () => this.#endGroup(),
      onCommitted: () => this.#committed(),
      onDropped: (frames: readonly Frame[]) => this.#rollBack(frames),
    }
    this.#frames = new FrameLog(frameOptions, hooks, first)
    this.#sequences = new SequenceAllocator(journal, options.topics, this.#frames)
    this.#coalesced = new CoalescedRecords(this.#frames, this.#sequences)
    const parts = { frames: this.#frames, sequences: this.#sequences }
    this.#unrecorded = new UnrecordedCounter({ directory: path, journal, topic: decisions, ...parts, log, crash })
    this.#every(tickMs, () => this.#onTick())
    if (options.fsyncMs !== undefined) this.#every(options.fsyncMs, () => void this.#sync())
  }

  #every(ms: number, what: () => void): void {
    this.#timers.push(setInterval(what, ms).unref())
  }

  get counters(): JournalCounters {
    return { numbered: this.#sequences.given, gaps: this.#unrecorded.counted, ...this.#frames.counters }
  }

  /** What callers gave since the process started, by the topic's index in the list. Decisions alone are coalesced. */
  countsOf(topic: number): { readonly appended: number; readonly refused: number } {
    const coalesced = topic === decisions ? this.#coalesced.closed : 0
    return { appended: (this.#appended[topic] ?? 0) + coalesced, refused: this.#refused[topic] ?? 0 }
  }

  /** Of writes to the disk, each of all that one turn of the event loop appended. */
  get writeDuration(): Histogram {
    return this.#frames.writeDuration
  }

  /** What keeps it from taking records now; undefined when nothing does. */
  get trouble(): JournalTrouble | undefined {
    return this.#ended ?? this.#frames.trouble ?? (this.#frames.hasSpace('reserved') ? undefined : 'full')
  }

  /** The disk had no space for the next segment when last asked. */
  get isOutOfSpace(): boolean {
    return this.#frames.isOutOfSpace
  }

  /** Of the bound: segments not yet deleted, and adopted directories. */
  get usedBytes(): number {
    return this.#frames.usedBytes
  }

  /** By its index in the list of topics. */
  log(topic: number): RecordLog {
    if (this.#sequences.topics[topic] === undefined) throw new RangeError(`no topic ${topic} in this journal`)
    return {
      append: (key, openLine, isReserved) => this.#append(topic, key, openLine, isReserved === true),
      openCoalesced: (key, before, after, latest) =>
        this.#ended === undefined ? this.#coalesced.open(topic, key, before, after, latest) : undefined,
      writtenInTime: () => this.#frames.writtenInTime(),
      finallyWritten: () => this.#frames.finallyWritten(),
    }
  }

  #append(topic: number, key: string, openLine: string, isReserved: boolean): boolean {
    const share = topic !== decisions ? 'background' : isReserved ? 'reserved' : 'normal'
    const isPut = this.#ended === undefined && this.#sequences.putRecord(frameKinds.record, topic, key, openLine, share)
    const counts = isPut ? this.#appended : this.#refused
    counts[topic] = (counts[topic] ?? 0) + 1
    if (!isPut && topic === decisions) this.#countMissed(decisionsIn(openLine))
    return isPut
  }

  /** Nothing is counted once the page is closed, or belongs to another process. */
  #countMissed(missed: number): void {
    if (missed > 0 && this.#ended === undefined) this.#unrecorded.count(missed)
  }

  #endGroup(): void {
    if (!this.#coalesced.putCounts()) this.#frames.abortGroup()
    this.#unrecorded.write()
  }

  #committed(): void {
    if (!this.#frames.isIdle) return
    this.#coalesced.committed()
    this.#unrecorded.committed()
    this.#raiseWatermark()
  }

  #raiseWatermark(): void {
    this.state.raiseWatermark(Math.floor(Math.min(Date.now(), this.#coalesced.oldestMs)))
  }

  #rollBack(frames: readonly Frame[]): void {
    this.#sequences.rollBack(frames)
    // One that is not among them is on its way to the file, and must not become another.
    if (frames.some(({ kind }) => kind === frameKinds.gap)) this.#unrecorded.rollBack()
    let missed = this.#coalesced.rollBack(frames, decisions)
    for (const { kind, topic, value } of frames) {
      if (kind === frameKinds.record && topic === decisions) missed += decisionsIn(value.toString('latin1'))
    }
    this.#countMissed(missed)
  }

  #onTick(): void {
    this.#frames.poll()
    this.#coalesced.close(false)
    this.#unrecorded.record()
    this.#unrecorded.writeLater()
    if (this.#frames.isIdle) this.#raiseWatermark()
    this.#ticks += 1
    if (this.#ticks % ticksPerPoll === 0) void this.#lookForDirectory()
  }

  async #lookForDirectory(): Promise<void> {
    // Whatever else keeps it from being looked at does not say that it is gone.
    const isStillOwner = await this.#directory.isStillOwner().catch(() => true)
    if (isStillOwner || this.#ended !== undefined) return
    this.#ended = 'taken-away'
    this.#stopTimers()
    const fields = { journal: this.journal }
    this.#options.log.error(fields, 'another process took over the journal; it accepts no more records')
    this.#options.onTakenAway?.()
  }

  async #sync(): Promise<void> {
    if (this.#isSyncing) return
    this.#isSyncing = true
    await this.#frames.sync().catch((error: unknown) => {
      this.#options.log.error({ reason: String(error) }, 'the journal could not be synced')
    })
    this.#isSyncing = false
  }

  #stopTimers(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /**
   * Spreads new records of a topic over another number of partitions, and writes that down for the reader of the
   * directory.
   */
  setPartitions(topic: number, partitions: number): void {
    if (!this.#sequences.setPartitions(topic, partitions)) return
    writeTopics(this.#directory.path, this.#sequences.topics)
    writeTopics(dirname(this.#directory.path), this.#sequences.topics)
  }

  /**
   * Closes all sums, writes the last turn and stops. The directory stays held. False if the disk did not take all,
   * or decisions are left in the gap file: then only who takes the directory over can bring it to its end.
   */
  close(): Promise<boolean> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<boolean> {
    this.#stopTimers()
    this.#unrecorded.record()
    const isClosed = this.#coalesced.close(true)
    const isWritten = await this.#frames.close()
    this.#ended ??= 'closed'
    this.#raiseWatermark()
    // What failed with the last turn has been counted since.
    await this.#unrecorded.close()
    return isClosed && isWritten && this.#unrecorded.isEmpty
  }
}

/** Begins to write in a directory that is held and empty. */
export async function openWriter(directory: DirectoryLock, options: WriterOptions): Promise<JournalWriter> {
  const { maxBytes, log, crash = noCrash, disk = realDisk } = options
  const sixteenth = Math.floor(maxBytes / 16)
  const segmentBytes = options.segmentBytes ?? Math.min(segmentBytesMax, Math.max(segmentBytesMin, sixteenth))
  const state = new JournalState()
  const isSynced = options.fsyncMs !== undefined
  const frameOptions = { directory: directory.path, state, maxBytes, segmentBytes, disk, log, crash, isSynced }
  const first = await openFirstSegment(frameOptions)
  return new JournalWriter(directory, options, frameOptions, first)
}
