import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'

/** How far a topic goes and how far its consumers are, asked of Kafka itself. */
export interface KafkaOffsets {
  /** By partition of the decisions. */
  ends(): Promise<ReadonlyMap<number, bigint>>
  /** Where the group would go on reading. */
  committed(groupId: string): Promise<ReadonlyMap<number, bigint>>
  close(): Promise<void>
}

export async function openKafkaOffsets(brokers: string): Promise<KafkaOffsets> {
  const admin = createClient(kafkaOptions(brokers)).admin()
  await admin.connect()
  const topic = topics.decisions
  return {
    async ends() {
      const offsets = await admin.fetchTopicOffsets(topic)
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]))
    },
    async committed(groupId) {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
      return new Map(found?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
    },
    close: () => admin.disconnect(),
  }
}
