import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, ConsumerStatus, RecordBatch, Start } from '@weir/kafka/consume-batches.ts'
import type { RangeRecord } from '@weir/kafka/partition-facts.ts'
import { type MeterOptions, PartitionMeter } from './meter-partition.ts'
import type { BlockRecord } from './ports.ts'

/** Meters all partitions of one topic that are assigned to this process. */
export interface Meter {
  onAssigned(assigned: AssignedPartition): Promise<Start>
  onBatch(batch: RecordBatch): Promise<void>
  /** What is not read or not inserted now, and why; undefined when all is well. */
  waiting(status: Pick<ConsumerStatus, 'stopped' | 'assigned'>): string | undefined
}

const empty = Buffer.alloc(0)

/** A record of a range that was read again, in the form of a consumed one. */
const asBlockRecord = ({ offset, value, timestampMs }: RangeRecord): BlockRecord => ({
  ...{ position: Number(offset), timestampMs, value, bytes: value ?? empty },
  ...{ valueStart: value === null ? -1 : 0, valueEnd: value?.length ?? 0 },
})

export function createMeter(options: Omit<MeterOptions, 'onWaiting'>): Meter {
  const partitions = new Map<number, PartitionMeter>()
  const waiting = new Map<number, string>()
  const onWaiting = (partition: number, reason: string | undefined) => {
    if (reason === undefined) waiting.delete(partition)
    else waiting.set(partition, reason)
  }

  return {
    async onAssigned(assigned) {
      const { partition } = assigned
      // Whatever was known of it belongs to the assignment before.
      const { topic, facts } = assigned
      const readRange = async (from: bigint, to: bigint) => (await assigned.readRange(from, to)).map(asBlockRecord)
      const meter = new PartitionMeter({ topic, partition, facts, readRange }, { ...options, onWaiting })
      partitions.set(partition, meter)
      waiting.delete(partition)
      return meter.start({
        // kafkajs sends them itself while nothing is consumed.
        async heartbeat() {
          if (assigned.isStale()) throw new WeirError('PARTITION_LOST', `partition ${partition} was assigned anew`)
        },
        commit: assigned.commit,
        isStale: assigned.isStale,
      })
    },
    async onBatch(batch) {
      const meter = partitions.get(batch.partition)
      if (meter === undefined) throw new Error(`records of partition ${batch.partition} came before it was started`)
      await meter.work(batch, batch.records)
    },
    waiting({ stopped, assigned }) {
      // What a lost partition waited for is for its new owner to say.
      const ours = new Set(assigned[options.kind.topic])
      const lines = [
        ...stopped.map(({ partition, reason }) => `partition ${partition} is stopped: ${reason}`),
        ...[...waiting]
          .filter(([partition]) => ours.has(partition))
          .map(([partition, reason]) => `partition ${partition} waits: ${reason}`),
      ]
      return lines.length === 0 ? undefined : lines.join('; ')
    },
  }
}
