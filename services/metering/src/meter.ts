import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, ConsumerStatus, RecordBatch, Start } from '@weir/kafka/consume-batches.ts'
import type { BlockSize } from './block-size.ts'
import type { BlockOptions } from './joint-block.ts'
import { PartitionMeter } from './meter-partition.ts'
import { type RoundBatch, RoundWriter } from './write-round.ts'

/** What all partitions of one topic share. */
export interface MeterOptions extends Omit<BlockOptions, 'onWaiting'> {
  readonly blockMax: BlockSize
  /** Blocks that are inserted concurrently when there is much to catch up with. */
  readonly blocksAtOnce: number
}

/** Partitions of a block: 3,000 of the 4,096 bytes of metadata that Kafka stores by default. */
const rangesMax = 128

const lost = (partition: number) => new WeirError('PARTITION_LOST', `partition ${partition} was reassigned`)

const isStop = (fault: unknown) => fault instanceof WeirError && fault.code === 'PARTITION_STOPPED'

/** Meters all partitions of one topic that are assigned to this process. */
export class Meter {
  readonly #options: BlockOptions & Pick<MeterOptions, 'blockMax' | 'blocksAtOnce'>
  readonly #partitions = new Map<number, PartitionMeter>()
  readonly #waiting = new Map<number, string>()
  readonly #rangesMax = { ranges: rangesMax }
  #resolving: Promise<ReadonlyMap<PartitionMeter, unknown>> | undefined

  constructor(options: MeterOptions) {
    const onWaiting = (partition: number, reason: string | undefined) => {
      if (reason === undefined) this.#waiting.delete(partition)
      else this.#waiting.set(partition, reason)
    }
    this.#options = { ...options, onWaiting }
  }

  async onAssigned(assigned: AssignedPartition): Promise<Start> {
    const { partition, isFenced } = assigned
    // All that is known of the partition belongs to the assignment before.
    const meter = new PartitionMeter(assigned, this.#options)
    this.#partitions.set(partition, meter)
    this.#waiting.delete(partition)
    // kafkajs sends heartbeats itself while no batch is processed.
    const heartbeat = async () => {
      if (isFenced()) throw lost(partition)
    }
    return meter.start({ heartbeat, isFenced, commitAll: (commits) => assigned.commitAll(commits) })
  }

  /** Writes what was fetched together: live one block, and one insert. */
  async onRound(round: readonly RecordBatch[]): Promise<Map<RecordBatch, unknown>> {
    const faults = new Map<RecordBatch, unknown>()
    for (const batch of round) if (batch.isFenced()) faults.set(batch, lost(batch.partition))
    const batches = round.filter((batch) => !faults.has(batch))
    const [ownership] = batches
    if (ownership === undefined) return faults
    const doubts = await this.#resolveDoubts(ownership)
    const { blockMax, blocksAtOnce } = this.#options
    const writer = new RoundWriter(ownership, this.#options, this.#rangesMax)
    const given = new Map<RecordBatch, PartitionMeter>()
    const fresh: RoundBatch[] = []
    for (const batch of batches) {
      const meter = this.#partitions.get(batch.partition)
      if (meter === undefined) throw new Error(`records of partition ${batch.partition} came before it was started`)
      given.set(batch, meter)
      const records = meter.unread(batch.records)
      if (doubts.has(meter)) writer.faults.set(meter, doubts.get(meter))
      else if (records.length > 0) fresh.push({ meter, records })
    }
    await writer.write(fresh, { ...blockMax, ...this.#rangesMax, lanes: blocksAtOnce })
    for (const [batch, meter] of given) if (writer.faults.has(meter)) faults.set(batch, writer.faults.get(meter))
    return faults
  }

  /**
   * All together, also those without records: a partition in doubt may wait for the one that declared its block.
   * Returns the faults of those that do not go on.
   */
  #resolveDoubts(ownership: RecordBatch): Promise<ReadonlyMap<PartitionMeter, unknown>> {
    // Rounds of several brokers may come at the same time.
    this.#resolving ??= this.#resolve(ownership).finally(() => {
      this.#resolving = undefined
    })
    return this.#resolving
  }

  async #resolve(ownership: RecordBatch): Promise<ReadonlyMap<PartitionMeter, unknown>> {
    const faults = new Map<PartitionMeter, unknown>()
    const doubtful = [...this.#partitions.values()].filter(({ isInDoubt }) => isInDoubt)
    for (const step of ['finishDeclared', 'restart'] as const) {
      const left = doubtful.filter((meter) => !faults.has(meter))
      await Promise.all(left.map((meter) => meter[step](ownership).catch((error) => void faults.set(meter, error))))
    }
    for (const [meter, fault] of faults) if (isStop(fault)) meter.stop()
    return faults
  }

  /** Returns which partitions are stopped or wait, and why; undefined when all are inserted. */
  waiting({ stopped, assigned }: Pick<ConsumerStatus, 'stopped' | 'assigned'>): string | undefined {
    // The new owner of a lost partition reports what it waits for.
    const ours = new Set(assigned[this.#options.kind.topic])
    const lines = [
      ...stopped.map(({ partition, reason }) => `partition ${partition} is stopped: ${reason}`),
      ...[...this.#waiting]
        .filter(([partition]) => ours.has(partition))
        .map(([partition, reason]) => `partition ${partition} waits: ${reason}`),
    ]
    return lines.length === 0 ? undefined : lines.join('; ')
  }
}
