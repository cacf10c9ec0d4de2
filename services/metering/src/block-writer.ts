import { type InsertRequest, linesOf } from '@weir/clickhouse/insert.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { InsertBlock } from './build-block.ts'
import type { MeterCounters } from './metrics.ts'
import {
  type HeartbeatOptions,
  type PartitionOwnership,
  retryWhileOwned,
  withHeartbeats,
} from './partition-ownership.ts'
import type { BookkeepingRows, DeadLetter, DeadLetterSink, RetriedBlock, UsageStore } from './ports.ts'
import type { WatermarkWriter } from './watermark-writer.ts'

/** What the partitions of one topic share in writing. */
export interface WriterOptions extends HeartbeatOptions {
  readonly store: UsageStore
  readonly deadLetters: DeadLetterSink
  readonly watermarks: WatermarkWriter
  readonly counters: MeterCounters
  readonly log: Logger
  readonly crash: CrashPoint
  /** Why a partition waits, for readiness; undefined when it goes on. */
  readonly onWaiting: (partition: number, reason: string | undefined) => void
}

/**
 * Writes the parts of blocks for one partition, and retries until they are written: while ClickHouse is down, slow, out
 * of memory or has a broken view, the partition waits with heartbeats, and Kafka keeps what comes behind. Rejects when
 * the partition is lost.
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

  /** Sends unreadable records to the topic of dead letters; stops the partition if Kafka refuses them for good. */
  async sendDeadLetters(ownership: PartitionOwnership, letters: readonly DeadLetter[]): Promise<void> {
    const { deadLetters, counters, log, crash } = this.#options
    if (letters.length === 0) return
    try {
      await withHeartbeats(ownership, this.#options, () => deadLetters.send(this.#partition, letters))
    } catch (error) {
      if (!(error instanceof WeirError) || error.code !== 'KAFKA_REFUSED') throw error
      throw new WeirError('PARTITION_STOPPED', `DEAD_LETTERS_REFUSED: ${error.message}`, error)
    }
    counters.deadLetters += letters.length
    log.error({ partition: this.#partition, letters: letters.length, why: letters[0]?.reason }, 'dead letters')
    crash('dead_letters')
  }

  /** Inserts a block's rows. Returns ClickHouse's words if it refuses them; then no later month was inserted. */
  async insertByMonth(
    ownership: PartitionOwnership,
    table: string,
    dedupToken: string,
    { months, encoder }: InsertBlock,
  ): Promise<Error | undefined> {
    // A month that the slow encoder leaves empty changes no other month's token: that month may be inserted already.
    const isOneInsert = months.length === 1 && encoder === 'fast'
    for (const { month, lines } of months) {
      const suffix = isOneInsert ? '' : `:${month.replace('-', '')}`
      const refusal = await this.#insert(ownership, { table, lines, dedupToken: `${dedupToken}${suffix}` })
      if (refusal !== undefined) return refusal
      this.#options.crash('insert')
    }
    return undefined
  }

  /**
   * Makes sure that every table has a block once that was sent more than once, by the owner before or by this one. If
   * ClickHouse was not restarted since, its list of tokens has seen to that.
   */
  async repair(ownership: PartitionOwnership, block: RetriedBlock, isRecovery: boolean): Promise<void> {
    const { store, log } = this.#options
    if (!isRecovery && !this.#wasRetried) return
    const report = await this.retry(ownership, () =>
      withHeartbeats(ownership, this.#options, (signal) =>
        store.repair(block, { signal, isFenced: () => ownership.isFenced() }),
      ),
    )
    this.#wasRetried = false
    if (report === undefined) return
    const { rows, rollups, undetermined } = report
    const where = { partition: this.#partition, block: block.dedupToken }
    if (rows > 0 || rollups.length > 0) {
      log.warn(
        { ...where, rows, rollups },
        'ClickHouse was killed while it took a block, and did not have it once in every table: repaired',
      )
    }
    if (undetermined.length > 0) {
      log.error(
        { ...where, undetermined },
        'ClickHouse was restarted and is too busy to compare: run weir audit --repair',
      )
    }
  }

  /** Inserts the rows about a block. Metering generates them, so a refusal is transient, and retried. */
  async insertBookkeeping(
    ownership: PartitionOwnership,
    dedupToken: string,
    { numbers, marks, gaps }: BookkeepingRows,
  ): Promise<void> {
    const isLast = marks.some(({ end }) => end)
    if (!isLast) this.#options.watermarks.add(marks)
    for (const [table, rows] of Object.entries({ numbers, marks: isLast ? marks : [], gaps })) {
      if (rows.length === 0) continue
      const request = { table, lines: linesOf(rows), dedupToken: `${dedupToken}:${table}` }
      await this.retry(ownership, async () => {
        const refusal = await this.#insert(ownership, request)
        if (refusal !== undefined) throw refusal
      })
      this.#options.crash(table)
    }
  }

  /** Calls ClickHouse until it answers; meanwhile readiness says what the partition waits for. */
  async retry<T>(ownership: PartitionOwnership, attempt: (failures: number) => Promise<T>): Promise<T> {
    const { log, onWaiting } = this.#options
    const partition = this.#partition
    let isWaiting = false
    const result = await retryWhileOwned(ownership, this.#options, attempt, (err, failures, pauseMs) => {
      isWaiting = true
      onWaiting(partition, err.message.slice(0, 200))
      log.warn({ err, partition, failures, pauseMs }, 'a call to ClickHouse failed, retrying')
    })
    if (isWaiting) onWaiting(partition, undefined)
    return result
  }

  #insert(ownership: PartitionOwnership, request: InsertRequest): Promise<Error | undefined> {
    const { store, counters } = this.#options
    return this.retry(ownership, async (failures) => {
      if (failures > 0) await this.#refuseWhileInserting(request.dedupToken)
      try {
        return await withHeartbeats(ownership, this.#options, (signal) => store.insert(request, signal))
      } catch (error) {
        counters.insertRetries += 1
        this.#wasRetried = true
        throw error
      }
    })
  }

  /** Two requests with the same token at the same time could get past ClickHouse's list of tokens. */
  async #refuseWhileInserting(dedupToken: string): Promise<void> {
    if (await this.#options.store.isInsertRunning(dedupToken))
      throw new Error(`ClickHouse still works on ${dedupToken}`)
  }

  /** Waits until no insert runs whose token begins so. */
  waitForPreviousInsert(ownership: PartitionOwnership, dedupToken: string): Promise<void> {
    return this.retry(ownership, () => this.#refuseWhileInserting(dedupToken))
  }
}
