import { topics } from '@weir/contracts/topics.ts'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'

/** A topic's ends, how far its consumers are, and what is done to topics from outside; asked of Kafka itself. */
export type KafkaOffsets = Awaited<ReturnType<typeof openKafkaOffsets>>

export async function openKafkaOffsets(kafka: KafkaOptions) {
  const admin = createClient(kafka).admin()
  await admin.connect()
  return {
    /** By partition: the offset of the next record. */
    async ends(topic: string) {
      const offsets = await admin.fetchTopicOffsets(topic)
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]))
    },
    /** Where the group would go on reading the decisions. */
    async committed(groupId: string) {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topics.decisions] })
      return new Map(found?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
    },
    /** More partitions for a topic that has fewer. */
    async raisePartitions(topic: string, count: number) {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] })
    },
    deleteTopic: (topic: string) => admin.deleteTopics({ topics: [topic] }),
    close: () => admin.disconnect(),
  }
}
