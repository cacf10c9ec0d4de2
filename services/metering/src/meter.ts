import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, ConsumerStatus, RecordBatch, Start } from '@weir/kafka/consume-batches.ts'
import { type MeterOptions, PartitionMeter } from './meter-partition.ts'

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
    const { partition, commit, isFenced } = assigned
    // All that is known of the partition belongs to the assignment before.
    const meter = new PartitionMeter(assigned, this.#options)
    this.#partitions.set(partition, meter)
    this.#waiting.delete(partition)
    // kafkajs sends heartbeats itself while no batch is processed.
    const heartbeat = async () => {
      if (isFenced()) throw new WeirError('PARTITION_LOST', `partition ${partition} was reassigned`)
    }
    return meter.start({ heartbeat, commit, isFenced })
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
