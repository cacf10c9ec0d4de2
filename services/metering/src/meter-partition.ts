import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import { type OffsetRange, parseCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, Start } from '@weir/kafka/consume-batches.ts'
import { BlockWriter, shardOf } from './block-writer.ts'
import { declaredBy, findLead } from './declared-block.ts'
import { type BlockOptions, type BlockPart, type BuiltPart, metadataAt } from './joint-block.ts'
import type { PartitionOwnership } from './partition-ownership.ts'
import { PoisonBudget } from './poison-budget.ts'
import type { BlockRecord } from './ports.ts'
import { BlockRecovery } from './recover-block.ts'
import { type ExpiredRange, expiredRow, resolveStartOffset } from './resolve-start-offset.ts'
import { SequenceTracker } from './sequence-tracker.ts'

/** How often a partition looks whether the block that it waits for is finished. */
const leadPollMs = 250

/** What ends a partition until its next assignment. */
export const stopped = (reason: string) => new WeirError('PARTITION_STOPPED', reason)

/** One partition for as long as one assignment lasts: where it is read on, and what its next rows depend on. */
export class PartitionMeter {
  readonly partition: number
  readonly #options: BlockOptions
  readonly #assigned: AssignedPartition
  #topicPartition: TopicIdPartition
  #sequences = new SequenceTracker(new Map())
  #poison = new PoisonBudget()
  #seekOverrideUpTo: bigint | undefined
  /** The highest offset in ClickHouse. */
  #insertedUpTo = -1
  /** Where it is committed, without an intent. */
  #next = -1n
  #state: 'starting' | 'reading' | 'in doubt' | 'stopped' = 'starting'

  constructor(assigned: AssignedPartition, options: BlockOptions) {
    this.partition = assigned.partition
    this.#assigned = assigned
    this.#options = options
    this.#topicPartition = { topic: assigned.topic, partition: assigned.partition, topicId: '' }
  }

  get topicId(): string {
    return this.#topicPartition.topicId
  }

  /** Where it is committed and read on. */
  get next(): bigint {
    return this.#next
  }

  /** Its rows cannot be told from those before a person moved the offset: it shares no block. */
  get isAlone(): boolean {
    return this.#seekOverrideUpTo !== undefined
  }

  /** A block was begun and not finished: what Kafka and ClickHouse have of it has to be read. */
  get isInDoubt(): boolean {
    return this.#state === 'in doubt' && !this.#assigned.isFenced()
  }

  /** Resolves the resume position, and first waits until every block is finished that names this partition. */
  async start(ownership: PartitionOwnership): Promise<Start> {
    await this.#identify()
    for (;;) {
      const lead = await this.#settle(ownership)
      if (lead === undefined) return this.#resolve(ownership)
      this.#options.onWaiting(this.partition, waitsFor(lead))
      await this.#options.pause(leadPollMs)
      await ownership.heartbeat()
    }
  }

  async #resolve(ownership: PartitionOwnership): Promise<Start> {
    this.#options.onWaiting(this.partition, undefined)
    const shard = await shardOf(this.partition, ownership, this.#options)
    const writer = new BlockWriter([this.partition], ownership, this.#options, shard)
    const { store } = this.#options
    const facts = await this.#assigned.facts(this.partition)
    const lastInserted = await writer.retry(() => store.lastInserted(this.#topicPartition))
    const start = resolveStartOffset({ ...facts, partition: this.partition, lastInserted })
    if (start.kind === 'stop') {
      this.#state = 'stopped'
      return start
    }
    const { expired, seekOverrideUpTo, offset } = start
    const highest = await writer.retry(() => store.numbersBefore(this.#topicPartition, undefined))
    if (expired !== undefined) await this.#recordExpired(writer, expired)
    this.#seekOverrideUpTo = seekOverrideUpTo
    this.#insertedUpTo = Number(lastInserted ?? -1n)
    this.#poison = new PoisonBudget()
    this.#sequences = new SequenceTracker(highest)
    await this.#commitStart(ownership, facts.committed, offset)
    this.#next = offset
    this.#state = 'reading'
    return { kind: 'from', offset }
  }

  async #identify(): Promise<void> {
    const { topicId } = await this.#assigned.facts(this.partition)
    this.#topicPartition = { ...this.#topicPartition, topicId }
  }

  /** Finishes a block of its own. Returns the partition whose block names this one and is not finished. */
  async #settle(ownership: PartitionOwnership): Promise<number | undefined> {
    const [assigned, topicId] = [this.#assigned, this.topicId]
    // In this order: a lead is committed after its members.
    const upToThis = Array.from({ length: this.partition + 1 }, (_, partition) => partition)
    const committed = await assigned.committed(upToThis)
    const own = committed.get(this.partition)
    const intent = declaredBy(own, this.partition, topicId)
    if (own === undefined || intent === undefined) return findLead(this.partition, committed, topicId)
    await new BlockRecovery({ assigned, topicId, intent, committed: own }, ownership, this.#options).run()
    return this.#settle(ownership)
  }

  /** A block names where its partitions are committed: this one has to be committed where it is read on. */
  async #commitStart(
    ownership: PartitionOwnership,
    committed: { readonly offset: bigint; readonly metadata: string } | undefined,
    offset: bigint,
  ): Promise<void> {
    const metadata = metadataAt(this.topicId, offset, this.#seekOverrideUpTo)
    const { isSought } = parseCommitMetadata(committed?.metadata ?? '', this.partition)
    if (
      committed?.offset === offset &&
      !isSought &&
      declaredTopic(committed.metadata, this.partition) === this.topicId
    ) {
      return
    }
    await ownership.commitAll([{ partition: this.partition, offset: String(offset), metadata }])
  }

  /** Finishes the block that it declares, if it is in doubt about one. */
  async finishDeclared(ownership: PartitionOwnership): Promise<void> {
    await this.#identify()
    await this.#settle(ownership)
  }

  /**
   * Reads again what Kafka and ClickHouse have, after a block was begun and not finished. To be called when the block
   * is finished, by the partition that has declared it. Rejects with `PARTITION_STOPPED` if it goes on no more.
   */
  async restart(ownership: PartitionOwnership): Promise<void> {
    const lead = await this.#settle(ownership)
    if (lead !== undefined) throw new WeirError('KAFKA_UNAVAILABLE', `${waitsFor(lead)}; retrying the round`)
    const [known, before] = [this.#insertedUpTo, this.#next]
    const start = await this.#resolve(ownership)
    if (start.kind === 'stop') throw stopped(start.reason)
    // Rows that were there are not there any more.
    if (start.offset < before && this.#insertedUpTo < known) {
      throw stopped(`BEHIND: ClickHouse lost rows meanwhile; at its next start it is read from ${start.offset} on`)
    }
  }

  /** Returns the records that are not yet committed. */
  unread(records: readonly BlockRecord[]): readonly BlockRecord[] {
    const next = Number(this.#next)
    return (records[0]?.position ?? next) >= next ? records : records.filter(({ position }) => position >= next)
  }

  /** Returns a part of a block: these records behind what is committed. */
  part(range: OffsetRange, records: readonly BlockRecord[]): BlockPart {
    const [sequences, insertedUpTo, seekOverrideUpTo] = [this.#sequences, this.#insertedUpTo, this.#seekOverrideUpTo]
    return { range, records, sequences, insertedUpTo, seekOverrideUpTo }
  }

  /** Counts bad records among others. Returns why the partition stops, if there are too many. */
  spend(records: number, bad: number, { range, built }: BuiltPart): WeirError | undefined {
    if (this.#poison.spend(records, bad)) return undefined
    const share = `${built.deadLetters.length} of the records ${range.from} to ${range.to}`
    return stopped(`TOO_MANY_BAD: ${share} cannot be read; first reason: ${built.deadLetters[0]?.reason}`)
  }

  /** From here on it is not known what Kafka has of it. */
  doubt(): void {
    this.#state = 'in doubt'
  }

  /** Nothing more is read until the next assignment. */
  stop(): void {
    this.#state = 'stopped'
  }

  /** Its part of a block is written and committed. */
  finish({ range, built }: BuiltPart): void {
    const { counters, log } = this.#options
    const { partition } = this
    this.#sequences.commit()
    this.#insertedUpTo = built.insertedUpTo
    this.#next = range.to + 1n
    if (range.to + 1n > (this.#seekOverrideUpTo ?? -1n)) this.#seekOverrideUpTo = undefined
    counters.duplicates += built.duplicates
    for (const missing of built.missing) {
      counters.lost += missing.count
      log.error({ partition, ...missing }, 'sequence numbers never arrived')
    }
  }

  /** Records offsets that Kafka deleted before they were read, before anything behind them is committed. */
  async #recordExpired(writer: BlockWriter, expired: ExpiredRange): Promise<void> {
    const { topicId, partition } = this.#topicPartition
    const { log, counters } = this.#options
    log.error({ partition, ...expired }, 'Kafka deleted records before they were read')
    const gaps = [expiredRow(this.#topicPartition, expired)]
    const dedupToken = `${topicId}:${partition}:expired-${expired.to}`
    await writer.insertBookkeeping(dedupToken, { numbers: [], marks: [], gaps })
    counters.expired += Number(expired.to - expired.from) + 1
  }
}

const waitsFor = (lead: number) => `partition ${lead} must first finish their joint block`

const declaredTopic = (metadata: string, partition: number) => parseCommitMetadata(metadata, partition).topicId
