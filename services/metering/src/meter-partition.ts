import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import { type Encoder, encodeCommitMetadata, type InsertIntent } from '@weir/contracts/commit-metadata.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, Start } from '@weir/kafka/consume-batches.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { type BlockCut, type BlockSize, cutBlocks } from './block-size.ts'
import { BlockWriter, type WriterOptions } from './block-writer.ts'
import { buildBlock, type InsertBlock } from './build-block.ts'
import type { PartitionOwnership } from './partition-ownership.ts'
import { PoisonBudget } from './poison-budget.ts'
import type { BlockRecord } from './ports.ts'
import type { RecordKind } from './record-kinds.ts'
import { type ExpiredRange, expiredRow, resolveStartOffset } from './resolve-start-offset.ts'
import { SequenceTracker } from './sequence-tracker.ts'

/** What all partitions of one topic share. */
export interface MeterOptions extends WriterOptions {
  readonly kind: RecordKind
  readonly blockMax: BlockSize
}

/** A record of a range that was read again, in the form of a consumed one. */
const asBlockRecord = ({ offset, value, timestampMs }: LogRecord): BlockRecord => ({
  position: Number(offset),
  timestampMs,
  value,
  bytes: value ?? Buffer.alloc(0),
  valueStart: value === null ? -1 : 0,
  valueEnd: value?.length ?? 0,
})

const stopped = (reason: string) => new WeirError('PARTITION_STOPPED', reason)

/**
 * Brings one partition's records into ClickHouse, each exactly once, for as long as one assignment lasts.
 * docs/metering.md lists the order of effects and what a crash between any two of them costs.
 */
export class PartitionMeter {
  readonly #options: MeterOptions
  readonly #assigned: AssignedPartition
  readonly #writer: BlockWriter
  #partition: TopicIdPartition
  #sequences = new SequenceTracker(new Map())
  #poison = new PoisonBudget()
  #seekOverrideUpTo: bigint | undefined
  /** The highest offset in ClickHouse. */
  #insertedUpTo = -1
  /** A block was begun and not finished: what Kafka and ClickHouse have of it has to be read. */
  #isUnfinished = false

  constructor(assigned: AssignedPartition, options: MeterOptions) {
    this.#assigned = assigned
    this.#options = options
    this.#writer = new BlockWriter(assigned.partition, options)
    this.#partition = { topic: assigned.topic, partition: assigned.partition, topicId: '' }
  }

  /** Resolves the resume position, and first inserts again the block that the owner before logged as its intent. */
  async start(ownership: PartitionOwnership): Promise<Start> {
    const { store, log, counters } = this.#options
    const { topic, partition } = this.#assigned
    const facts = await this.#assigned.facts()
    this.#partition = { topic, partition, topicId: facts.topicId }
    const lastInserted = await this.#writer.retry(ownership, () => store.lastInserted(this.#partition))
    const start = resolveStartOffset({ ...facts, lastInserted })
    if (start.kind === 'stop') return start
    const { recover, expired, seekOverrideUpTo, offset } = start
    this.#seekOverrideUpTo = seekOverrideUpTo
    this.#insertedUpTo = Number(lastInserted ?? -1n)
    this.#poison = new PoisonBudget()
    // Among rows from before a person moved the offset back, those of the block cannot be told from the others.
    const overlapsOldRows = recover !== undefined && seekOverrideUpTo !== undefined && recover.to <= seekOverrideUpTo
    const before = overlapsOldRows ? undefined : recover?.from
    // An insert that still runs must be over before the rows are read.
    if (recover !== undefined) await this.#writer.waitForPreviousInsert(ownership, this.#dedupToken(recover))
    const highest = await this.#writer.retry(ownership, () => store.numbersBefore(this.#partition, before))
    this.#sequences = new SequenceTracker(highest)
    if (expired !== undefined) await this.#recordExpired(ownership, expired)
    if (recover !== undefined) {
      log.info({ partition, ...recover }, 'inserting again what was declared')
      const records = await this.#assigned.readRange(recover.from, recover.to)
      const cut = { records: records.map(asBlockRecord), intent: recover }
      await this.#insertBlock(ownership, cut, true)
      counters.recoveries += 1
    }
    this.#isUnfinished = false
    return { kind: 'from', offset }
  }

  /** Processes records: all are committed when it resolves. After a rejection, the next call starts with `start`. */
  async process(ownership: PartitionOwnership, records: readonly BlockRecord[]): Promise<void> {
    const rest = this.#isUnfinished ? await this.#afterDoubt(ownership, records) : records
    this.#isUnfinished = true
    for (const cut of cutBlocks(rest, this.#options.blockMax)) await this.#insertBlock(ownership, cut, false)
    this.#isUnfinished = false
  }

  async #afterDoubt(ownership: PartitionOwnership, records: readonly BlockRecord[]): Promise<readonly BlockRecord[]> {
    const known = this.#insertedUpTo
    const start = await this.start(ownership)
    if (start.kind === 'stop') throw stopped(start.reason)
    // Between the last row and this offset are only watermarks, unless ClickHouse has less than it had.
    if ((records[0]?.position ?? 0) > start.offset && this.#insertedUpTo < known) {
      throw stopped(`BEHIND: ClickHouse lost rows meanwhile; at its next start it is read from ${start.offset} on`)
    }
    return records.filter(({ position }) => BigInt(position) >= start.offset)
  }

  /** The numbered order of effects. */
  async #insertBlock(ownership: PartitionOwnership, { records, intent }: BlockCut, isRecovery: boolean): Promise<void> {
    const { crash, kind, log } = this.#options
    const dedupToken = this.#dedupToken(intent)
    let block = this.#build(records, intent.encoder, isRecovery, 0)
    // 1. Log the write intent: the committed offset stays, and its metadata names the block. Crash before this step:
    //    nothing happened. Crash after it: the next owner inserts exactly this range with the same encoder. A block of
    //    watermarks alone skips the step, because repeating a watermark is harmless, and they come every second; it is
    //    declared only if it also writes number rows.
    const hasOnlyWatermarks =
      block.rows === 0 && block.deadLetters.length === 0 && block.bookkeeping.numbers.length === 0
    if (!hasOnlyWatermarks && !isRecovery) await this.#declare(ownership, intent)
    crash('declare')
    // 2. Rows. A crash within it or after it: the next owner repeats the insert, and ClickHouse drops what it has.
    let refusal = await this.#insertRows(ownership, dedupToken, block)
    if (refusal !== undefined && intent.encoder === 'fast') {
      const { partition } = this.#partition
      log.warn({ err: refusal, partition, block: dedupToken }, 'block refused, reading each of its records')
      this.#sequences.rollBack()
      block = this.#build(records, 'slow', isRecovery, block.deadLetters.length)
      await this.#declare(ownership, { ...intent, encoder: 'slow' })
      crash('redeclare')
      refusal = await this.#insertRows(ownership, dedupToken, block)
    }
    if (refusal !== undefined) throw stopped(`ROWS_REFUSED: ${refusal.message.slice(0, 300)}`)
    if (block.rows > 0) {
      const timestampMs = records.at(-1)?.timestampMs ?? 0
      const months = block.months.map(({ lines }) => lines)
      const retried = { ...this.#partition, table: kind.table, dedupToken, months, timestampMs }
      await this.#writer.repair(ownership, retried, isRecovery)
    }
    // 3. Dead letters. A crash after it sends them again, under the same keys; after the commit, a crash between would
    //    lose them.
    await this.#writer.sendDeadLetters(ownership, block.deadLetters)
    // 4. Numbers, watermarks and gaps. After the rows, for a watermark says that they are there. A crash after it
    //    repeats them, which changes nothing.
    await this.#writer.insertBookkeeping(ownership, dedupToken, block.bookkeeping)
    // 5. Commit the offset, which ends the intent. A crash before it repeats 2 to 4.
    await this.#commit(ownership, intent.to + 1n)
    crash('commit')
    this.#finish(block)
  }

  /** Returns ClickHouse's words if it refuses the rows. Looks first whether the declaration came too late. */
  async #insertRows(ownership: PartitionOwnership, dedupToken: string, block: InsertBlock): Promise<Error | undefined> {
    const { partition } = this.#partition
    if (ownership.isFenced()) throw new WeirError('PARTITION_LOST', `partition ${partition} was reassigned`)
    return this.#writer.insertByMonth(ownership, this.#options.kind.table, dedupToken, block)
  }

  #build(records: readonly BlockRecord[], encoder: Encoder, isRecovery: boolean, deadLettersSent: number): InsertBlock {
    const { kind, log } = this.#options
    const { partition, topicId } = this.#partition
    const sequences = this.#sequences
    const block = buildBlock(records, {
      kind,
      encoder,
      partition,
      topicId,
      sequences,
      insertedUpTo: this.#insertedUpTo,
    })
    // The bad records of a block that was declared were within the budget when it was declared.
    const found = block.deadLetters.length - deadLettersSent
    if (!isRecovery && !this.#poison.spend(deadLettersSent === 0 ? records.length : found, found)) {
      sequences.rollBack()
      const share = `${block.deadLetters.length} of ${records.length} records from offset ${records[0]?.position} on`
      throw stopped(`TOO_MANY_BAD: ${share} cannot be read, the first because: ${block.deadLetters[0]?.reason}`)
    }
    for (const missing of block.missing) log.error({ partition, ...missing }, 'numbers that never came')
    return block
  }

  async #declare(ownership: PartitionOwnership, intent: InsertIntent): Promise<void> {
    await ownership.commit(String(intent.from), this.#metadata(intent))
  }

  async #commit(ownership: PartitionOwnership, offset: bigint): Promise<void> {
    if (this.#seekOverrideUpTo !== undefined && offset > this.#seekOverrideUpTo) this.#seekOverrideUpTo = undefined
    await ownership.commit(String(offset), this.#metadata(undefined))
  }

  #finish(block: InsertBlock): void {
    const { counters } = this.#options
    this.#sequences.commit()
    this.#insertedUpTo = block.insertedUpTo
    counters.rows += block.rows
    counters.batches += 1
    counters.duplicates += block.duplicates
    for (const { count } of block.missing) counters.lost += count
  }

  /** Records offsets that Kafka deleted before they were read, before anything behind them is committed. */
  async #recordExpired(ownership: PartitionOwnership, expired: ExpiredRange): Promise<void> {
    const { topicId, partition } = this.#partition
    const { log, counters } = this.#options
    log.error({ partition, ...expired }, 'Kafka deleted records before they were read')
    const gaps = [expiredRow(this.#partition, expired)]
    const dedupToken = `${topicId}:${partition}:expired-${expired.to}`
    await this.#writer.insertBookkeeping(ownership, dedupToken, { numbers: [], marks: [], gaps })
    counters.expired += Number(expired.to - expired.from) + 1
  }

  #metadata(intent: InsertIntent | undefined): string {
    return encodeCommitMetadata({
      topicId: this.#partition.topicId,
      intent,
      seekOverrideUpTo: this.#seekOverrideUpTo,
    })
  }

  /** Names the block in every incarnation of the topic. */
  #dedupToken({ from, to }: InsertIntent): string {
    return `${this.#partition.topicId}:${this.#partition.partition}:${from}-${to}`
  }
}
