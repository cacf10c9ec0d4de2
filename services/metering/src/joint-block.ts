import {
  type Encoder,
  encodeCommitMetadata,
  type InsertIntent,
  noCommitMetadata,
  type OffsetRange,
} from '@weir/contracts/commit-metadata.v2.ts'
import type { Clock } from '@weir/core/clock.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { OffsetCommit } from '@weir/kafka/consume-batches.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import { BlockTrace } from './block-trace.ts'
import { BlockWriter, type WriterOptions } from './block-writer.ts'
import { buildBlock, type InsertBlock } from './build-block.ts'
import { dedupTokenOf } from './declared-block.ts'
import type { PartitionOwnership } from './partition-ownership.ts'
import type { BlockRecord, MonthLines } from './ports.ts'
import type { RecordKind } from './record-kinds.ts'
import type { SequenceTracker } from './sequence-tracker.ts'

/** What all blocks of one topic share. */
export interface BlockOptions extends WriterOptions {
  readonly kind: RecordKind
  readonly clock: Clock
  /** Undefined where nothing is traced. */
  readonly tracing?: Tracing | undefined
}

/** The part of a block that is of one partition, with what its rows depend on. */
export interface BlockPart {
  readonly range: OffsetRange
  readonly records: readonly BlockRecord[]
  readonly sequences: SequenceTracker
  /** The highest offset that ClickHouse has without the block. */
  readonly insertedUpTo: number
  /** A person moved the offset: rows up to here may already be there. */
  readonly seekOverrideUpTo: bigint | undefined
}

/** A part with its rows. */
export interface BuiltPart extends BlockPart {
  readonly built: InsertBlock
}

/** How a block is written: as a new one, or as one that was declared before. */
export interface WriteMode {
  readonly isRecovery: boolean
  /** Its token may be forgotten: rows of it are looked for before it is sent. */
  readonly mustLook: boolean
}

/** What is declared with a block, and where. */
export interface Declaration {
  readonly topicId: string
  /** Of the whole block; a recovery may have to leave out some of its parts. */
  readonly ranges: readonly OffsetRange[]
  readonly encoder: Encoder
  /** Where it is inserted; undefined for a server by itself. */
  readonly shard: string | undefined
  /** When it was declared, which its rows have too; undefined for a server by itself, which gives them its own time. */
  readonly receivedAtMs: number | undefined
  /** Where the lead is committed. */
  readonly lead: { readonly offset: bigint; readonly isSought: boolean; readonly seekOverrideUpTo: bigint | undefined }
}

/** What all rows of a block have. */
export type RowsOf = Pick<Declaration, 'topicId' | 'receivedAtMs'>

/** Builds a part's rows, which moves its sequence tracker on. */
export function buildPart(part: BlockPart, encoder: Encoder, kind: RecordKind, of: RowsOf): BuiltPart {
  const { range, records, sequences, insertedUpTo } = part
  const { partition } = range
  return { ...part, built: buildBlock(records, { ...of, kind, encoder, partition, sequences, insertedUpTo }) }
}

/** Whether nothing of a part could come twice: then it is not declared. */
export const hasOnlyWatermarks = ({ built: { rows, deadLetters, bookkeeping } }: BuiltPart): boolean =>
  rows === 0 && deadLetters.length === 0 && bookkeeping.numbers.length === 0

/** Returns the metadata of a partition that no block waits at. */
export const metadataAt = (topicId: string, offset: bigint, seekOverrideUpTo: bigint | undefined): string =>
  encodeCommitMetadata({
    ...noCommitMetadata,
    topicId,
    seekOverrideUpTo: offset > (seekOverrideUpTo ?? -1n) ? undefined : seekOverrideUpTo,
  })

/** Puts the lines of several parts behind one another, month by month. */
function joinMonths(parts: readonly BuiltPart[]): MonthLines[] {
  const months = Map.groupBy(
    parts.flatMap(({ built }) => built.months),
    ({ month }) => month,
  )
  return [...months]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([month, of]) => ({
      month,
      lines: of.length === 1 && of[0] !== undefined ? of[0].lines : Buffer.concat(of.map(({ lines }) => lines)),
      rows: of.reduce((sum, { rows }) => sum + rows, 0),
    }))
}

/**
 * One block: parts of one partition or more that are declared, inserted and recovered as one unit. Its methods are the
 * numbered order of effects; docs/metering.md says what a crash between any two of them costs.
 */
export class JointBlock {
  readonly #options: BlockOptions
  readonly #ownership: PartitionOwnership
  readonly #topicId: string
  readonly #ranges: readonly OffsetRange[]
  readonly #lead: Declaration['lead']
  readonly #shard: string | undefined
  readonly #receivedAtMs: number | undefined
  readonly #writer: BlockWriter
  #parts: readonly BuiltPart[]
  #encoder: Encoder
  #trace: BlockTrace | undefined
  #isRecovery = false

  constructor(
    parts: readonly BuiltPart[],
    { topicId, ranges, encoder, lead, shard, receivedAtMs }: Declaration,
    ownership: PartitionOwnership,
    options: BlockOptions,
  ) {
    this.#options = options
    this.#ownership = ownership
    this.#topicId = topicId
    this.#ranges = ranges
    this.#lead = lead
    this.#shard = shard
    this.#receivedAtMs = receivedAtMs
    this.#parts = parts
    this.#encoder = encoder
    const partitions = ranges.map(({ partition }) => partition)
    this.#writer = new BlockWriter(partitions, ownership, options, shard)
  }

  get parts(): readonly BuiltPart[] {
    return this.#parts
  }

  get #dedupToken(): string {
    return dedupTokenOf(this.#topicId, this.#ranges)
  }

  /**
   * 1. Logs the write intent: the committed offset of the first partition, the lead, stays, and its metadata names all
   *    ranges. One partition, so it stands or it does not. Crash before it: nothing happened. Crash after it: the next
   *    owner of the lead inserts exactly these ranges with the same encoder, and the others wait for that.
   */
  async declare(): Promise<void> {
    const declaredAtMs = this.#receivedAtMs ?? this.#options.clock.nowMs()
    const [ranges, encoder, shard] = [this.#ranges, this.#encoder, this.#shard]
    await this.#commitIntent({ ranges, encoder, declaredAtMs, isInserted: false, shard })
  }

  /**
   * 2. Rows. A crash within it or after it: the next owner repeats the insert, and ClickHouse drops what it has.
   *
   * @returns ClickHouse's words if it refuses the rows, also after each record was read.
   */
  async insertRows(mode: WriteMode): Promise<Error | undefined> {
    const { kind, log, crash, tracing } = this.#options
    this.#isRecovery = mode.isRecovery
    this.#trace ??= tracing && BlockTrace.begin(tracing, kind, this.#parts)
    this.#trace?.insertBegins()
    const refusal = await this.#insert(mode)
    this.#trace?.insertEnded()
    if (refusal === undefined || this.#encoder === 'slow') return refusal
    log.warn({ err: refusal, block: this.#dedupToken }, 'block rejected, checking each of its records')
    this.rollBack()
    this.#encoder = 'slow'
    const rowsOf = { topicId: this.#topicId, receivedAtMs: this.#receivedAtMs }
    this.#parts = this.#parts.map((part) => buildPart(part, 'slow', kind, rowsOf))
    await this.declare()
    crash('redeclare')
    return this.#insert(mode)
  }

  async #insert({ isRecovery, mustLook }: WriteMode): Promise<Error | undefined> {
    const { kind, store } = this.#options
    const [dedupToken, months] = [this.#dedupToken, joinMonths(this.#parts)]
    if (months.length === 0) return undefined
    // The answer to the declaration may have come after a reassignment.
    if (this.#ownership.isFenced()) {
      throw new WeirError('PARTITION_LOST', `partition ${this.#ranges[0]?.partition} was reassigned`)
    }
    const timestampMs = Math.max(...this.#parts.map(({ records }) => records.at(-1)?.timestampMs ?? 0))
    const lines = months.map((month) => month.lines)
    const block = {
      topic: kind.topic,
      topicId: this.#topicId,
      table: kind.table,
      dedupToken,
      months: lines,
      timestampMs,
      shard: this.#shard,
    }
    const isThere = mustLook && (await this.#writer.retry(() => store.hasRows(block)))
    if (!isThere) {
      // A month that the slow encoder, or a part that is left out, leaves empty changes no other month's token: that
      // month may be inserted already.
      const isOneInsert = this.#ranges.length === 1 && months.length === 1 && this.#encoder === 'fast'
      const into = { table: kind.table, dedupToken, traceparent: this.#trace?.traceparent }
      const refusal = await this.#writer.insertByMonth(into, months, isOneInsert)
      if (refusal !== undefined) return refusal
    }
    await this.#writer.repair(block, { isRecovery, isForced: isThere })
    return undefined
  }

  /** Whether any month of the refused block is inserted: then it cannot be dissolved. */
  async isInserted(): Promise<boolean> {
    const { kind, store } = this.#options
    const months = joinMonths(this.#parts).map(({ lines }) => lines)
    const [topicId, dedupToken, shard] = [this.#topicId, this.#dedupToken, this.#shard]
    const block = { topic: kind.topic, topicId, table: kind.table, dedupToken, months, shard }
    return this.#writer.retry(() => store.hasRows(block))
  }

  /**
   * 3. Dead letters. A crash after it sends them again, under the same keys; after the commit, a crash between would
   *    lose them.
   *
   * @returns the partitions whose letters Kafka refuses for good, each with its refusal.
   */
  async sendDeadLetters(): Promise<Map<number, WeirError>> {
    const held = new Map<number, WeirError>()
    for (const { range, built } of this.#parts) {
      const refusal = await this.#writer.sendDeadLetters(range.partition, built.deadLetters)
      if (refusal !== undefined) held.set(range.partition, refusal)
    }
    return held
  }

  /**
   * 4. Numbers, watermarks and gaps, also of partitions that have nothing but watermarks. After the rows, for a
   *    watermark says that they are there. A crash after it repeats them, which changes nothing.
   */
  async insertBookkeeping(resting: readonly BuiltPart[] = []): Promise<void> {
    const rows = [...this.#parts, ...resting].map(({ built }) => built.bookkeeping)
    await this.#writer.insertBookkeeping(this.#dedupToken, {
      numbers: rows.flatMap(({ numbers }) => numbers),
      marks: rows.flatMap(({ marks }) => marks),
      gaps: rows.flatMap(({ gaps }) => gaps),
    })
  }

  /**
   * 5. Commits the members, and then the lead, which ends the intent. Kafka may store some of the members and refuse
   *    others; a crash before the lead is committed repeats 2 to 5 for those that still stand where the block begins.
   */
  async commit(commits: readonly OffsetCommit[]): Promise<void> {
    const lead = this.#ranges[0]?.partition
    const members = commits.filter(({ partition }) => partition !== lead)
    if (members.length > 0) await this.#ownership.commitAll(members)
    if (members.length > 0) this.#options.crash('members')
    await this.#ownership.commitAll(commits.filter(({ partition }) => partition === lead))
    this.#options.crash('commit')
    const rows = this.#parts.reduce((sum, { built }) => sum + built.rows, 0)
    this.#trace?.committed({ rows, partitions: this.#parts.length, isRecovery: this.#isRecovery })
  }

  /** Ends the intent of a refused block of which nothing is inserted: its parts go on by themselves. */
  async dissolve(): Promise<void> {
    this.rollBack()
    await this.#commitIntent(undefined)
    this.#options.crash('dissolve')
  }

  rollBack(): void {
    for (const { sequences } of this.#parts) sequences.rollBack()
  }

  /** Returns where a part's partition is committed once the block is written; at its letters, if those are refused. */
  commitOf({ range, seekOverrideUpTo, built }: BuiltPart, held: ReadonlyMap<number, unknown>): OffsetCommit {
    const { partition, from, to } = range
    if (!held.has(partition)) {
      return { partition, offset: String(to + 1n), metadata: metadataAt(this.#topicId, to + 1n, seekOverrideUpTo) }
    }
    const declaredAtMs = this.#options.clock.nowMs()
    const intent = { ranges: [range], encoder: built.encoder, declaredAtMs, isInserted: true, shard: this.#shard }
    const metadata = encodeCommitMetadata({ ...noCommitMetadata, topicId: this.#topicId, intent, seekOverrideUpTo })
    return { partition, offset: String(from), metadata }
  }

  async #commitIntent(intent: InsertIntent | undefined): Promise<void> {
    const partition = this.#ranges[0]?.partition
    if (partition === undefined) throw new Error('a block has a part')
    const { offset, ...more } = this.#lead
    const metadata = encodeCommitMetadata({ topicId: this.#topicId, intent, ...more })
    await this.#ownership.commitAll([{ partition, offset: String(offset), metadata }])
  }
}
