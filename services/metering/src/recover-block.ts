import {
  encodeCommitMetadata,
  encodeRanges,
  type InsertIntent,
  noCommitMetadata,
  parseCommitMetadata,
} from '@weir/contracts/commit-metadata.v2.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, OffsetCommit } from '@weir/kafka/consume-batches.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { BlockWriter } from './block-writer.ts'
import {
  dedupTokenOf,
  mayBeForgotten,
  offsetAfter,
  planRecovery,
  type RangeFacts,
  standingOf,
} from './declared-block.ts'
import { type BlockOptions, type BuiltPart, buildPart, JointBlock, metadataAt } from './joint-block.ts'
import { type PartitionOwnership, withHeartbeats } from './partition-ownership.ts'
import type { BlockRecord } from './ports.ts'
import { SequenceTracker } from './sequence-tracker.ts'

/** A block that a partition declares, as its owner found it. */
export interface FoundBlock {
  /** The partition whose metadata declares it. */
  readonly assigned: AssignedPartition
  readonly topicId: string
  readonly intent: InsertIntent
  readonly committed: { readonly offset: bigint; readonly metadata: string }
}

/** The time that a declared block's rows were given, if it was not ClickHouse's own. */
const receivedAtOf = ({ shard, declaredAtMs }: InsertIntent) => (shard === undefined ? undefined : declaredAtMs)

/** A record of a range that was read again, in the form of a consumed one. */
const asBlockRecord = ({ offset, value, timestampMs, fault }: LogRecord): BlockRecord => ({
  position: Number(offset),
  timestampMs,
  value,
  fault,
  bytes: value ?? Buffer.alloc(0),
  valueStart: value === null ? -1 : 0,
  valueEnd: value?.length ?? 0,
})

/**
 * Finishes the block that a partition declares, for all of its partitions: those of others wait for it. Nothing of it
 * needs to be owned but the lead. Safe to repeat, also after a crash within, and while a zombie sends the same block.
 */
export class BlockRecovery {
  readonly #found: FoundBlock
  readonly #ownership: PartitionOwnership
  readonly #options: BlockOptions
  readonly #writer: BlockWriter
  readonly #lead: number

  constructor(found: FoundBlock, ownership: PartitionOwnership, options: BlockOptions) {
    this.#found = found
    this.#ownership = ownership
    this.#options = options
    this.#lead = found.assigned.partition
    this.#writer = new BlockWriter([this.#lead], ownership, options, found.intent.shard)
  }

  /** Resolves when the metadata no longer declares the block. Rejects with `PARTITION_STOPPED` if it has to. */
  async run(): Promise<void> {
    const { intent, topicId } = this.#found
    const { log, counters } = this.#options
    // An insert that still runs must be over before rows are read.
    await this.#writer.waitForPreviousInsert(dedupTokenOf(topicId, intent.ranges))
    const facts = await this.#read(() => this.#facts())
    const plan = planRecovery(facts)
    const { isFinished, rebuilt } = plan
    const found = { block: encodeRanges(intent.ranges), isFinished, rebuilt: rebuilt.length }
    log.info({ partition: this.#lead, ...found }, 'finishing a declared block')
    let written: { readonly block: JointBlock; readonly held: ReadonlyMap<number, WeirError> } | undefined
    if (plan.rebuilt.length > 0) {
      const block = await this.#rebuild(plan.rebuilt)
      if (await this.#isBehind(block, plan.rebuilt)) return block.dissolve()
      const refusal = await this.#insert(block, plan.rebuilt.length < intent.ranges.length)
      if (refusal !== undefined) return this.#dissolve(block, refusal)
      written = { block, held: await block.sendDeadLetters() }
      await block.insertBookkeeping()
    }
    const commits: OffsetCommit[] = []
    for (const range of facts) {
      const part = written?.block.parts.find((one) => one.range.partition === range.partition)
      if (written !== undefined && part !== undefined) commits.push(written.block.commitOf(part, written.held))
      else commits.push(...(await this.#commitWithout(range, plan.isFinished)))
    }
    await (written?.block ?? this.#block([])).commit(commits)
    counters.recoveries += 1
    const held = written?.held.get(this.#lead)
    if (held !== undefined) throw held
  }

  #read<T>(work: () => Promise<T>): Promise<T> {
    return withHeartbeats(this.#ownership, this.#options, work)
  }

  async #facts(): Promise<RangeFacts[]> {
    const { assigned, intent, topicId } = this.#found
    const committed = await assigned.committed(intent.ranges.map(({ partition }) => partition))
    const found: RangeFacts[] = []
    for (const range of intent.ranges) {
      const { partition } = range
      const { first, end } = await assigned.facts(partition)
      const standing = standingOf(range, committed.get(partition), this.#lead, topicId)
      const { isSought, seekOverrideUpTo } = parseCommitMetadata(committed.get(partition)?.metadata ?? '', partition)
      const lastInserted = await this.#lastInserted(partition)
      found.push({
        ...range,
        standing,
        first,
        end,
        lastInserted,
        seekOverrideUpTo: isSought ? undefined : seekOverrideUpTo,
      })
    }
    return found
  }

  #lastInserted(partition: number): Promise<bigint | undefined> {
    const { kind, store } = this.#options
    return this.#writer.retry(() => store.lastInserted({ topic: kind.topic, topicId: this.#found.topicId, partition }))
  }

  /** Reads the ranges again: the same rows, from the same records and the numbers before them. */
  async #rebuild(ranges: readonly RangeFacts[]): Promise<JointBlock> {
    const { assigned, intent, topicId } = this.#found
    const { kind, store } = this.#options
    const parts: BuiltPart[] = []
    for (const { partition, from, to, seekOverrideUpTo } of ranges) {
      // Among rows from before a person moved the offset back, those of the block cannot be told from the others.
      const before = to <= (seekOverrideUpTo ?? -1n) ? undefined : from
      const topicPartition = { topic: kind.topic, topicId, partition }
      const highest = await this.#writer.retry(() => store.numbersBefore(topicPartition, before))
      const records = await this.#read(() => assigned.readRange(partition, from, to))
      if (records.length === 0) continue
      const part = {
        range: { partition, from, to },
        records: records.map(asBlockRecord),
        seekOverrideUpTo,
        sequences: new SequenceTracker(highest),
        insertedUpTo: Number(from) - 1,
      }
      parts.push(buildPart(part, intent.encoder, kind, { topicId, receivedAtMs: receivedAtOf(intent) }))
    }
    return this.#block(parts)
  }

  #block(parts: readonly BuiltPart[]): JointBlock {
    const { intent, topicId, committed } = this.#found
    const { isSought, seekOverrideUpTo } = parseCommitMetadata(committed.metadata, this.#lead)
    const lead = { offset: committed.offset, isSought, seekOverrideUpTo }
    const { ranges, encoder, shard } = intent
    const declaration = { topicId, ranges, encoder, shard, receivedAtMs: receivedAtOf(intent), lead }
    return new JointBlock(parts, declaration, this.#ownership, this.#options)
  }

  /**
   * Whether ClickHouse lost rows from before the block, as one that was restored from a backup: numbers are skipped,
   * and its last row is not the one before. With the block inserted nothing would show where to read on from.
   */
  async #isBehind(block: JointBlock, ranges: readonly RangeFacts[]): Promise<boolean> {
    const isHole = ({ range: { partition, from }, built }: BuiltPart) =>
      built.missing.length > 0 &&
      ranges.some((one) => one.partition === partition && (one.lastInserted ?? -1n) < from - 1n)
    if (this.#found.intent.isInserted || !block.parts.some(isHole) || (await block.isInserted())) return false
    this.#options.log.warn({ partition: this.#lead }, 'ClickHouse lacks records before a block: reading again')
    return true
  }

  #insert(block: JointBlock, isPartial: boolean): Promise<Error | undefined> {
    const { intent } = this.#found
    if (intent.isInserted) return Promise.resolve(undefined)
    const isSoughtOver = block.parts.some(({ seekOverrideUpTo, range }) => range.to <= (seekOverrideUpTo ?? -1n))
    const mustLook = !isSoughtOver && (isPartial || mayBeForgotten(intent, this.#options.clock.nowMs()))
    return block.insertRows({ isRecovery: true, mustLook })
  }

  /** A block of several partitions that ClickHouse refuses is read again, by each of them; one of one stops it. */
  async #dissolve(block: JointBlock, refusal: Error): Promise<void> {
    const isAlone = this.#found.intent.ranges.length === 1
    if (isAlone || (await block.isInserted())) {
      throw new WeirError('PARTITION_STOPPED', `ROWS_REFUSED: ${refusal.message.slice(0, 300)}`)
    }
    await block.dissolve()
  }

  /** A range that was not read again. */
  async #commitWithout(range: RangeFacts, isFinished: boolean): Promise<OffsetCommit[]> {
    const { topicId, committed } = this.#found
    const { partition, seekOverrideUpTo } = range
    const lastInserted = isFinished ? range.lastInserted : await this.#lastInserted(partition)
    const offset = offsetAfter({ ...range, lastInserted }, { isFinished, rebuilt: [] })
    if (offset !== undefined) {
      return [{ partition, offset: String(offset), metadata: metadataAt(topicId, offset, seekOverrideUpTo) }]
    }
    if (partition !== this.#lead) return []
    const { isSought, seekOverrideUpTo: upTo } = parseCommitMetadata(committed.metadata, partition)
    const metadata = encodeCommitMetadata({ ...noCommitMetadata, topicId, isSought, seekOverrideUpTo: upTo })
    return [{ partition, offset: String(committed.offset), metadata }]
  }
}
