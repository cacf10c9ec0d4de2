import { topics } from '@weir/contracts/topics.ts'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'

/** A topic's ends, how far its consumers are, and what is done to topics from outside; asked of Kafka itself. */
export interface KafkaOffsets {
  /** By partition: the offset of the next record. */
  ends(topic: string): Promise<ReadonlyMap<number, bigint>>
  /** Where the group would go on reading the decisions. */
  committed(groupId: string): Promise<ReadonlyMap<number, bigint>>
  /** More partitions for a topic that has fewer. */
  raisePartitions(topic: string, count: number): Promise<void>
  deleteTopic(topic: string): Promise<void>
  close(): Promise<void>
}

export async function openKafkaOffsets(kafka: KafkaOptions): Promise<KafkaOffsets> {
  const admin = createClient(kafka).admin()
  await admin.connect()
  return {
    async ends(topic) {
      const offsets = await admin.fetchTopicOffsets(topic)
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]))
    },
    async committed(groupId) {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topics.decisions] })
      return new Map(found?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
    },
    async raisePartitions(topic, count) {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] })
    },
    deleteTopic: (topic) => admin.deleteTopics({ topics: [topic] }),
    close: () => admin.disconnect(),
  }
}
