import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { frameKinds } from '../format/frame.ts'
import { type Gap, GapFile, gapOpenLine } from '../format/gap-file.ts'
import type { FrameLog } from './frame-log.ts'
import type { SequenceAllocator } from './sequence-allocator.ts'

interface UnrecordedCounterOptions {
  readonly directory: string
  readonly journal: string
  readonly topic: number
  readonly frames: FrameLog
  readonly sequences: SequenceAllocator
  readonly log: Logger
  readonly crash: CrashPoint
}

/**
 * Decisions answered without a record. They are counted in the gap file before the answer, unless the disk is slow or
 * stalls; once the journal has space they become one gap record, and only when that is in the file does the file begin
 * at zero.
 */
export class UnrecordedCounter {
  readonly #options: UnrecordedCounterOptions
  readonly #file: GapFile
  #underWay: Gap | undefined
  #isFailing = false
  /** Since the process started. */
  counted = 0

  constructor(options: UnrecordedCounterOptions) {
    this.#options = options
    this.#file = new GapFile(options.directory)
  }

  count(decisions: number): void {
    this.counted += decisions
    this.#file.count(decisions, Date.now())
    this.#options.frames.schedule()
  }

  /**
   * Before what was counted is answered. A disk that is slow or stalls would hold up everybody: there the page is
   * written now and then.
   */
  write(): void {
    if (this.#options.frames.isSlow) return
    try {
      this.#file.write()
      this.#isFailing = false
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Now and then. */
  writeLater(): void {
    // It would take a thread and keep it.
    if (this.#options.frames.trouble === 'stalled') return
    this.#file.writeLater().then(
      () => {
        this.#isFailing = false
      },
      (error: unknown) => this.#failed(error),
    )
  }

  /** It is tried with every group; one line says so until it is written again. */
  #failed(error: unknown): void {
    if (!this.#isFailing) {
      this.#options.log.error(
        { reason: String(error), count: this.#file.gap.count },
        'the gap file could not be written',
      )
    }
    this.#isFailing = true
  }

  /** Makes the gap a record once there is space for other records again. */
  record(): void {
    const { gap } = this.#file
    if (gap.count === 0 || this.#underWay !== undefined || !this.#options.frames.hasSpace('normal')) return
    const text = `${gap.generation} ${gapOpenLine(gap)}`
    if (this.#options.sequences.putRecord(frameKinds.gap, this.#options.topic, this.#options.journal, text, 'closing'))
      this.#underWay = gap
  }

  /** All frames are in the file. */
  committed(): void {
    if (this.#underWay === undefined) return
    this.#options.crash('journal_gap_recorded')
    this.#file.begin(this.#underWay)
    this.#underWay = undefined
    this.write()
  }

  /** The gap record is not in the file. */
  rollBack(): void {
    this.#underWay = undefined
  }

  /** All that was counted is in the file as gap records. */
  get isEmpty(): boolean {
    return this.#file.gap.count === 0
  }

  /** What was counted last is in the page, unless the disk stalls: then the file is left open. */
  async close(): Promise<void> {
    if (this.#options.frames.trouble === 'stalled') return
    await this.#file.close().catch((error: unknown) => this.#failed(error))
  }
}
