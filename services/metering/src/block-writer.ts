import { type InsertRequest, linesOf } from '@weir/clickhouse/insert.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { MeterCounters } from './metrics.ts'
import {
  type HeartbeatOptions,
  type PartitionOwnership,
  retryWhileOwned,
  withHeartbeats,
} from './partition-ownership.ts'
import type { BookkeepingRows, DeadLetter, DeadLetterSink, MonthLines, RetriedBlock, UsageStore } from './ports.ts'
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

/** Asks for the shard of a partition's next block until it is known; undefined for a server by itself. */
export async function shardOf(partition: number, ownership: PartitionOwnership, options: WriterOptions) {
  const { shards } = options.store
  if (shards === undefined) return undefined
  return new BlockWriter([partition], ownership, options, undefined).retry(() => shards.nameFor(partition))
}

/**
 * Writes the parts of one block, and retries until they are written: while ClickHouse is down, slow, out of memory or
 * has a broken view, the block's partitions wait with heartbeats, and Kafka keeps what comes behind. Rejects when they
 * are lost.
 */
export class BlockWriter {
  readonly #partitions: readonly number[]
  readonly #ownership: PartitionOwnership
  readonly #options: WriterOptions
  readonly #shard: string | undefined
  /** An insert was sent again. */
  #wasRetried = false

  /** `shard`: where the rows are inserted; undefined for a server by itself. */
  constructor(
    partitions: readonly number[],
    ownership: PartitionOwnership,
    options: WriterOptions,
    shard: string | undefined,
  ) {
    this.#partitions = partitions
    this.#ownership = ownership
    this.#options = options
    this.#shard = shard
  }

  /** Sends unreadable records to the topic of dead letters. Returns Kafka's refusal, if it refuses them for good. */
  async sendDeadLetters(partition: number, letters: readonly DeadLetter[]): Promise<WeirError | undefined> {
    const { deadLetters, counters, log, crash } = this.#options
    if (letters.length === 0) return undefined
    try {
      await withHeartbeats(this.#ownership, this.#options, () => deadLetters.send(partition, letters))
    } catch (error) {
      if (!(error instanceof WeirError) || error.code !== 'KAFKA_REFUSED') throw error
      return new WeirError('PARTITION_STOPPED', `DEAD_LETTERS_REFUSED: ${error.message}`, error)
    }
    counters.deadLetters += letters.length
    log.error({ partition, letters: letters.length, why: letters[0]?.reason }, 'dead letters')
    crash('dead_letters')
    return undefined
  }

  /** Inserts a block's rows. Returns ClickHouse's words if it refuses them; then no later month was inserted. */
  async insertByMonth(
    { table, dedupToken, traceparent }: Pick<InsertRequest, 'table' | 'dedupToken' | 'traceparent'>,
    months: readonly MonthLines[],
    isOneInsert: boolean,
  ): Promise<Error | undefined> {
    for (const { month, lines, rows } of months) {
      const suffix = isOneInsert ? '' : `:${month.replace('-', '')}`
      const refusal = await this.#insert({ table, lines, dedupToken: `${dedupToken}${suffix}`, traceparent }, rows)
      if (refusal !== undefined) return refusal
      this.#options.crash('insert')
    }
    return undefined
  }

  /**
   * Makes sure that every table has a block once that was sent more than once, by the owner before or by this one. If
   * ClickHouse was not restarted since, its list of tokens has seen to that, unless it may have forgotten the block's.
   */
  async repair(block: RetriedBlock, { isRecovery, isForced }: { isRecovery: boolean; isForced: boolean }) {
    const { store, log } = this.#options
    if (!isRecovery && !this.#wasRetried) return
    const report = await this.retry(() =>
      withHeartbeats(this.#ownership, this.#options, (signal) =>
        store.repair(block, { signal, isFenced: () => this.#ownership.isFenced(), isForced }),
      ),
    )
    if (report === undefined) return
    const { rows, rollups, undetermined } = report
    const where = { partitions: this.#partitions, block: block.dedupToken }
    if (rows > 0 || rollups.length > 0) {
      log.warn(
        { ...where, rows, rollups },
        'ClickHouse was killed while inserting a block and did not have it exactly once in every table: repaired',
      )
    }
    if (undetermined.length > 0) {
      log.error(
        { ...where, undetermined },
        'ClickHouse was restarted, and the block could not be compared (busy, or a replica is silent): run weir audit --repair',
      )
    }
  }

  /** Inserts the rows about a block. Metering generates them, so a refusal is transient, and retried. */
  async insertBookkeeping(dedupToken: string, { numbers, marks, gaps }: BookkeepingRows): Promise<void> {
    const last = marks.filter(({ end }) => end)
    this.#options.watermarks.add(marks.filter(({ end }) => !end))
    for (const [table, rows] of Object.entries({ numbers, marks: last, gaps })) {
      if (rows.length === 0) continue
      const request = { table, lines: linesOf(rows), dedupToken: `${dedupToken}:${table}` }
      await this.retry(async () => {
        const refusal = await this.#insert(request)
        if (refusal !== undefined) throw refusal
      })
      this.#options.crash(table)
    }
  }

  /** Calls ClickHouse until it answers; meanwhile readiness says what the partitions wait for. */
  async retry<T>(attempt: (failures: number) => Promise<T>): Promise<T> {
    const { log } = this.#options
    let isWaiting = false
    const result = await retryWhileOwned(this.#ownership, this.#options, attempt, (err, failures, pauseMs) => {
      isWaiting = true
      this.#wait(err.message.slice(0, 200))
      log.warn({ err, partitions: this.#partitions, failures, pauseMs }, 'call to ClickHouse failed, retrying')
    })
    if (isWaiting) this.#wait(undefined)
    return result
  }

  #wait(reason: string | undefined): void {
    for (const partition of this.#partitions) this.#options.onWaiting(partition, reason)
  }

  /** `rows` are those of records. */
  #insert(request: InsertRequest, rows = 0): Promise<Error | undefined> {
    const { store, counters } = this.#options
    return this.retry(async (failures) => {
      try {
        if (failures > 0) await this.#refuseWhileInserting(request.dedupToken)
        const startedMs = performance.now()
        const refusal = await withHeartbeats(this.#ownership, this.#options, (signal) =>
          store.insert({ ...request, shard: this.#shard }, signal),
        )
        if (refusal === undefined && rows > 0) {
          counters.insertSeconds.observe((performance.now() - startedMs) / 1_000)
          counters.insertRows.observe(rows)
        }
        return refusal
      } catch (error) {
        counters.insertRetries += 1
        this.#wasRetried = true
        throw error
      }
    })
  }

  /** Two requests with the same token at the same time could get past ClickHouse's list of tokens. */
  async #refuseWhileInserting(dedupToken: string): Promise<void> {
    if (await this.#options.store.isInsertRunning(dedupToken, this.#shard))
      throw new Error(`ClickHouse is still inserting ${dedupToken}`)
  }

  /** Waits until no insert runs whose token begins so. */
  waitForPreviousInsert(dedupToken: string): Promise<void> {
    return this.retry(() => this.#refuseWhileInserting(dedupToken))
  }
}
