import { describePartition } from '@weir/audit/dead-letters.ts'
import { topics } from '@weir/contracts/topics.ts'
import { partitionOf } from '@weir/kafka/partition.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { kafkaOptions } from './kafka-topics.ts'

const partitions = 6

/** Whether metering has committed all of a key's partition: a block that it has not, the next process inserts again. */
export async function isMetered(brokers: string, topic: string, key: string): Promise<boolean> {
  const group = topic === topics.decisions ? 'weir-metering' : 'weir-metering-outcomes'
  const admin = new PartitionAdmin(kafkaOptions(brokers), group)
  const { committed, end } = await describePartition(admin, topic, partitionOf(key, partitions))
  await admin.close()
  return (committed?.offset ?? 0n) === end
}
