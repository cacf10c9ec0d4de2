import { WeirError } from '@weir/core/errors.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Block } from './build-block.ts'
import { linesOf } from './json-lines.ts'
import type { MarkGatherer } from './mark-gatherer.ts'
import type { MeterCounters } from './metrics.ts'
import { type Owner, type Pause, pauseAfter, pauseBeating, whileBeating } from './owner.ts'
import type {
  DeadLetter,
  DeadLetterSink,
  InsertOutcome,
  RetriedBlock,
  RowBlock,
  SideRows,
  UsageStore,
} from './ports.ts'

/** What the partitions of one topic share in writing. */
export interface WriterOptions {
  readonly store: UsageStore
  readonly deadLetters: DeadLetterSink
  readonly marks: MarkGatherer
  readonly counters: MeterCounters
  readonly log: Logger
  readonly pause: Pause
  /** Between heartbeats while an insert is under way. */
  readonly beatMs: number
  readonly crash: CrashPoint
  /** Why a partition waits, for readiness; undefined when it goes on. */
  readonly onWaiting: (partition: number, reason: string | undefined) => void
}

const asError = (thrown: unknown) => (thrown instanceof Error ? thrown : new Error(String(thrown)))

/**
 * Writes the parts of blocks for one partition, and tries until they are written: ClickHouse being away, slow, out of memory or with a
 * broken view is waited for, with heartbeats, while Kafka keeps what comes behind. Rejects when the partition is lost meanwhile.
 */
export class BlockWriter {
  readonly #partition: number
  readonly #options: WriterOptions
  /** An insert since the last repair was sent again. */
  #wasRetried = false

  constructor(partition: number, options: WriterOptions) {
    this.#partition = partition
    this.#options = options
  }

  async letters(owner: Owner, letters: readonly DeadLetter[]): Promise<void> {
    const { deadLetters, counters, log, crash } = this.#options
    if (letters.length === 0) return
    try {
      await whileBeating(owner, this.#options, () => deadLetters.send(this.#partition, letters))
    } catch (error) {
      if (!(error instanceof WeirError) || error.code !== 'KAFKA_REFUSED') throw error
      throw new WeirError('PARTITION_STOPPED', `DEAD_LETTERS_REFUSED: ${error.message}`, error)
    }
    counters.deadLetters += letters.length
    log.error({ partition: this.#partition, letters: letters.length, why: letters[0]?.reason }, 'dead letters')
    crash('dead_letters')
  }

  /** The error of a block whose rows ClickHouse refuses; then nothing more of it was inserted. */
  async months(owner: Owner, table: string, token: string, { months }: Block): Promise<Error | undefined> {
    for (const { month, lines } of months) {
      const suffix = months.length === 1 ? '' : `:${month.replace('-', '')}`
      const outcome = await this.#insert(owner, { table, lines, token: `${token}${suffix}` })
      if (outcome.kind === 'unreadable') return outcome.error
      this.#options.crash('insert')
    }
    return undefined
  }

  /**
   * Makes sure that every table has a block once that was sent more than once, by the owner before or by this one. If ClickHouse
   * was not restarted since, its list of tokens has seen to that.
   */
  async repair(owner: Owner, block: RetriedBlock, isRecovery: boolean): Promise<void> {
    const { store, log } = this.#options
    if (!isRecovery && !this.#wasRetried) return
    const report = await this.patiently(owner, () =>
      whileBeating(owner, this.#options, (signal) => store.repair(block, { signal, isFenced: () => owner.isStale() })),
    )
    this.#wasRetried = false
    if (report === undefined) return
    const { rows, rollups, unsure } = report
    const where = { partition: this.#partition, block: block.dedupToken }
    if (rows > 0 || rollups.length > 0) {
      log.warn(
        { ...where, rows, rollups },
        'ClickHouse was killed while it took a block, and did not have it once in every table: repaired',
      )
    }
    if (unsure.length > 0) {
      log.error({ ...where, unsure }, 'ClickHouse was restarted and is too busy to compare: run weir audit --repair')
    }
  }

  /** Rows about a block. ClickHouse refusing them is waited for like anything else of its: they are ours, and right. */
  async sides(owner: Owner, token: string, sides: SideRows): Promise<void> {
    const isLast = sides.marks.some(({ end }) => end)
    if (!isLast) this.#options.marks.add(sides.marks)
    for (const [name, rows] of Object.entries({ ...sides, marks: isLast ? sides.marks : [] })) {
      if (rows.length === 0) continue
      const block = { table: name, lines: linesOf(rows), token: `${token}:${name}` }
      await this.patiently(owner, async () => {
        const outcome = await this.#insert(owner, block)
        if (outcome.kind !== 'inserted') throw outcome.error
      })
      this.#options.crash(name)
    }
  }

  /** Asks until there is an answer. */
  async patiently<T>(owner: Owner, ask: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        const answer = await ask()
        if (failures > 1) this.#options.onWaiting(this.#partition, undefined)
        return answer
      } catch (thrown) {
        if (owner.isStale()) throw thrown
        await this.#wait(owner, asError(thrown), failures)
      }
    }
  }

  async #wait(owner: Owner, error: Error, failures: number): Promise<void> {
    const { log, onWaiting } = this.#options
    const pauseMs = pauseAfter(failures)
    onWaiting(this.#partition, error.message.slice(0, 200))
    log.warn({ err: error, partition: this.#partition, failures, pauseMs }, 'ClickHouse did not do it, trying again')
    await pauseBeating(owner, this.#options, pauseMs)
  }

  async #insert(owner: Owner, block: RowBlock): Promise<InsertOutcome> {
    const { store, counters, onWaiting } = this.#options
    for (let failures = 1; ; failures += 1) {
      const outcome = await whileBeating(owner, this.#options, (signal) => store.insert(block, signal))
      if (outcome.kind !== 'unavailable') {
        if (failures > 1) onWaiting(this.#partition, undefined)
        return outcome
      }
      counters.insertRetries += 1
      this.#wasRetried = true
      await this.#wait(owner, outcome.error, failures)
      await this.untilNotInserting(owner, block.token)
    }
  }

  /** The same block at work twice at once could get past what remembers its token. */
  async untilNotInserting(owner: Owner, token: string): Promise<void> {
    await this.patiently(owner, async () => {
      if (await this.#options.store.isInserting(token)) throw new Error(`ClickHouse still works on ${token}`)
    })
  }
}
