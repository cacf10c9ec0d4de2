import { WeirError } from '@weir/core/errors.ts'
import { isMetadataTooLarge } from '@weir/kafka/kafka-errors.ts'
import { shardOf } from './block-writer.ts'
import { type BlockOptions, type BuiltPart, buildPart, hasOnlyWatermarks, JointBlock } from './joint-block.ts'
import { type PartitionMeter, stopped } from './meter-partition.ts'
import { type PackLimits, type Portion, packRound } from './pack-round.ts'
import type { PartitionOwnership } from './partition-ownership.ts'
import type { BlockRecord } from './ports.ts'

/** What a partition brings to a round. */
export interface RoundBatch {
  readonly meter: PartitionMeter
  readonly records: readonly BlockRecord[]
}

/** A part of a block, and the partition that it is of. */
type Owned = BuiltPart & { readonly owner: PartitionMeter }

/** Partitions of a block, halved when a broker does not take the metadata that lists them; for all later rounds. */
export interface RangesMax {
  ranges: number
}

/** Writes the blocks of one round. */
export class RoundWriter {
  /** Why a partition does not go on. */
  readonly faults = new Map<PartitionMeter, unknown>()
  readonly #ownership: PartitionOwnership
  readonly #options: BlockOptions
  readonly #rangesMax: RangesMax

  constructor(ownership: PartitionOwnership, options: BlockOptions, rangesMax: RangesMax) {
    this.#ownership = ownership
    this.#options = options
    this.#rangesMax = rangesMax
  }

  /**
   * Resolves when every partition is committed behind its records, or has a fault. Partitions of different shards share
   * no block.
   */
  async write(batches: readonly RoundBatch[], limits: PackLimits): Promise<void> {
    const fetched = batches.map(({ meter, records }) => {
      const { partition, next, isAlone } = meter
      return { owner: meter, partition, from: next, records, isAlone }
    })
    const count = this.#options.store.shards?.count ?? 1
    const byShard = Map.groupBy(fetched, ({ partition }) => partition % count)
    const lanes = [...byShard.values()].flatMap((ofShard) => packRound(ofShard, limits))
    await Promise.all(lanes.map((blocks) => this.#writeLane(blocks)))
  }

  async #writeLane(blocks: readonly (readonly Portion<PartitionMeter>[])[]): Promise<void> {
    const { clock, store } = this.#options
    for (const block of blocks) {
      const portions = block.filter(({ owner }) => !this.faults.has(owner))
      const owners = portions.map(({ owner }) => owner)
      try {
        const receivedAtMs = store.shards === undefined ? undefined : clock.nowMs()
        if (portions.length > 0) await this.#writeBlock(this.#build(portions, receivedAtMs), receivedAtMs)
      } catch (error) {
        const fault = this.#read(error, portions.length)
        for (const owner of owners) {
          if (this.faults.has(owner)) continue
          owner.doubt()
          this.faults.set(owner, fault)
        }
      }
    }
  }

  /** A list of ranges that a broker finds too long is a shorter one the next time. */
  #read(error: unknown, ranges: number): unknown {
    const cause = error instanceof WeirError ? error.cause : undefined
    if (!isMetadataTooLarge(cause) || ranges <= 1) return error
    this.#rangesMax.ranges = Math.max(1, Math.floor(ranges / 2))
    this.#options.log.warn({ ...this.#rangesMax }, 'Kafka allows too little metadata for a block: using smaller ones')
    return new WeirError('KAFKA_UNAVAILABLE', 'the metadata of a block was too large; trying a smaller block', cause)
  }

  /** Builds the parts; a partition with too many bad records stops here and is left out. */
  #build(portions: readonly Portion<PartitionMeter>[], receivedAtMs: number | undefined): Owned[] {
    const { kind } = this.#options
    return portions.flatMap(({ owner, range, records }) => {
      const part = buildPart(owner.part(range, records), 'fast', kind, { topicId: owner.topicId, receivedAtMs })
      const fault = owner.spend(records.length, part.built.deadLetters.length, part)
      if (fault === undefined) return [{ ...part, owner }]
      part.sequences.rollBack()
      this.#stop(owner, fault)
      return []
    })
  }

  #stop(owner: PartitionMeter, fault: unknown): void {
    owner.stop()
    this.faults.set(owner, fault)
  }

  /** The numbered order of effects; see JointBlock. */
  async #writeBlock(parts: readonly Owned[], receivedAtMs: number | undefined): Promise<void> {
    const { crash } = this.#options
    const resting = parts.filter(hasOnlyWatermarks)
    const declared = parts.filter((part) => !hasOnlyWatermarks(part))
    if (parts.length === 0) return
    if (declared.length === 0) return this.#rest(resting)
    const block = await this.#blockOf(declared, receivedAtMs)
    await block.declare()
    crash('declare')
    const refusal = await block.insertRows({ isRecovery: false, mustLook: false })
    if (refusal !== undefined) return this.#dissolve(block, parts, refusal)
    const held = await block.sendDeadLetters()
    await block.insertBookkeeping(resting)
    const written = block.parts.map((part, at) => ({ ...part, owner: declared[at]?.owner }))
    const commits = [...block.parts, ...resting].map((part) => block.commitOf(part, held))
    await block.commit(commits)
    for (const part of resting) part.owner.finish(part)
    for (const [at, { owner, ...part }] of written.entries()) {
      owner?.finish(part)
      // What only reading each record found bad is borne, and the partition stops behind it.
      const found = part.built.deadLetters.length - (declared[at]?.built.deadLetters.length ?? 0)
      const fault = held.get(part.range.partition) ?? (found > 0 ? owner?.spend(found, found, part) : undefined)
      if (owner !== undefined && fault !== undefined) this.#stop(owner, fault)
    }
  }

  async #blockOf(parts: readonly Owned[], receivedAtMs: number | undefined): Promise<JointBlock> {
    const [first] = parts
    if (first === undefined) throw new Error('a block has a part')
    const { owner, range, seekOverrideUpTo } = first
    const lead = { offset: range.from, isSought: false, seekOverrideUpTo }
    const shard = await shardOf(range.partition, this.#ownership, this.#options)
    const declaration = {
      topicId: owner.topicId,
      ranges: parts.map((part) => part.range),
      encoder: 'fast',
      shard,
      receivedAtMs,
      lead,
    } as const
    return new JointBlock(parts, declaration, this.#ownership, this.#options)
  }

  /** Partitions with nothing but watermarks, which come every second: repeating those is harmless. */
  async #rest(parts: readonly Owned[]): Promise<void> {
    const block = await this.#blockOf(parts, undefined)
    await block.insertBookkeeping()
    await this.#ownership.commitAll(parts.map((part) => block.commitOf(part, new Map())))
    this.#options.crash('commit')
    for (const part of parts) part.owner.finish(part)
  }

  /** ClickHouse refuses a block although each record was read: each partition goes on alone, and only one stops. */
  async #dissolve(block: JointBlock, parts: readonly Owned[], refusal: Error): Promise<void> {
    const fault = stopped(`ROWS_REFUSED: ${refusal.message.slice(0, 300)}`)
    if (block.parts.length === 1 || (await block.isInserted())) {
      block.rollBack()
      const refused = parts.filter(({ range }) => block.parts.some((one) => one.range.partition === range.partition))
      for (const { owner } of refused) this.#stop(owner, fault)
      // What rests is not committed, and comes again.
      for (const { owner } of parts) if (!this.faults.has(owner)) owner.doubt()
      if (refused.length < parts.length) throw new WeirError('KAFKA_UNAVAILABLE', 'another block was refused')
      return
    }
    this.#options.log.warn(
      { err: refusal, ranges: block.parts.length },
      'block rejected, inserting each partition alone',
    )
    await block.dissolve()
    for (const { owner, range, records, sequences } of parts) {
      sequences.rollBack()
      await this.#writeLane([[{ owner, range, records }]])
    }
  }
}
