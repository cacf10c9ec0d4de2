import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, ConsumerStatus, RecordBatch, Start } from '@weir/kafka/consume-batches.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { type MeterOptions, PartitionMeter } from './meter-partition.ts'
import type { PartitionOwnership } from './partition-ownership.ts'
import type { BlockRecord } from './ports.ts'

const empty = Buffer.alloc(0)

/** A record of a range that was read again, in the form of a consumed one. */
const asBlockRecord = ({ offset, value, timestampMs }: LogRecord): BlockRecord => ({
  position: Number(offset),
  timestampMs,
  value,
  bytes: value ?? empty,
  valueStart: value === null ? -1 : 0,
  valueEnd: value?.length ?? 0,
})

const ownershipOf = ({ partition, commit, isFenced }: AssignedPartition): PartitionOwnership => ({
  // kafkajs sends heartbeats itself while no batch is processed.
  async heartbeat() {
    if (isFenced()) throw new WeirError('PARTITION_LOST', `partition ${partition} was reassigned`)
  },
  commit,
  isFenced,
})

/** Meters all partitions of one topic that are assigned to this process. */
export class Meter {
  readonly #options: MeterOptions
  readonly #partitions = new Map<number, PartitionMeter>()
  readonly #waiting = new Map<number, string>()

  constructor(options: Omit<MeterOptions, 'onWaiting'>) {
    const onWaiting = (partition: number, reason: string | undefined) => {
      if (reason === undefined) this.#waiting.delete(partition)
      else this.#waiting.set(partition, reason)
    }
    this.#options = { ...options, onWaiting }
  }

  async onAssigned(assigned: AssignedPartition): Promise<Start> {
    const { topic, partition, facts } = assigned
    const readRange = async (from: bigint, to: bigint) => (await assigned.readRange(from, to)).map(asBlockRecord)
    // All that is known of the partition belongs to the assignment before.
    const meter = new PartitionMeter({ topic, partition, facts, readRange }, this.#options)
    this.#partitions.set(partition, meter)
    this.#waiting.delete(partition)
    return meter.start(ownershipOf(assigned))
  }

  async onBatch(batch: RecordBatch): Promise<void> {
    const meter = this.#partitions.get(batch.partition)
    if (meter === undefined) throw new Error(`records of partition ${batch.partition} came before it was started`)
    await meter.process(batch, batch.records)
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
