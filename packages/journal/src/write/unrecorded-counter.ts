import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { frameKinds } from '../format/frame.ts'
import { type Gap, GapPage, gapOpenLine } from '../format/gap-page.ts'
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
 * Decisions answered without a record. They are counted in the gap page before the answer, unless the disk is slow or
 * stalls; once the journal has room they become one gap record, and only when that is in the file does the page begin
 * at zero.
 */
export class UnrecordedCounter {
  readonly #options: UnrecordedCounterOptions
  readonly #page: GapPage
  #underWay: Gap | undefined
  #isFailing = false
  /** Since the process started. */
  counted = 0

  constructor(options: UnrecordedCounterOptions) {
    this.#options = options
    this.#page = new GapPage(options.directory)
  }

  count(decisions: number): void {
    this.counted += decisions
    this.#page.count(decisions, Date.now())
    this.#options.frames.schedule()
  }

  /**
   * Before what was counted is answered. A disk that is slow or stalls would hold up everybody: there the page is
   * written now and then.
   */
  write(): void {
    if (this.#options.frames.isSlow) return
    try {
      this.#page.write()
      this.#isFailing = false
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Now and then. */
  writeLater(): void {
    // It would take a thread and keep it.
    if (this.#options.frames.trouble === 'stalled') return
    this.#page.writeLater().then(
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
        { reason: String(error), count: this.#page.gap.count },
        'the gap page could not be written',
      )
    }
    this.#isFailing = true
  }

  /** Where there is room for others' records again. */
  record(): void {
    const { gap } = this.#page
    if (gap.count === 0 || this.#underWay !== undefined || !this.#options.frames.hasRoom('normal')) return
    const text = `${gap.generation} ${gapOpenLine(gap)}`
    if (this.#options.sequences.putRecord(frameKinds.gap, this.#options.topic, this.#options.journal, text, 'closing'))
      this.#underWay = gap
  }

  /** All frames are in the file. */
  committed(): void {
    if (this.#underWay === undefined) return
    this.#options.crash('journal_gap_recorded')
    this.#page.begin(this.#underWay)
    this.#underWay = undefined
    this.write()
  }

  /** The gap record is not in the file. */
  rollBack(): void {
    this.#underWay = undefined
  }

  /** All that was counted is in the file as gap records. */
  get isEmpty(): boolean {
    return this.#page.gap.count === 0
  }

  /** What was counted last is in the page, unless the disk stalls: then the file is left open. */
  async close(): Promise<void> {
    if (this.#options.frames.trouble === 'stalled') return
    await this.#page.close().catch((error: unknown) => this.#failed(error))
  }
}
