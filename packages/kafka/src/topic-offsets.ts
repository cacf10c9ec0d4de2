import { createClient, type KafkaOptions } from './connect.ts'
import { kafkaFault } from './kafka-errors.ts'

/** Where a partition's records since some time begin. */
export interface PartitionOffset {
  readonly partition: number
  /** Of the first record that was appended since then; where the log ends if there is none. */
  readonly offset: bigint
}

/** Every partition of a topic, in order. Rejects with a `KAFKA_…` error, also when there is no such topic. */
export async function offsetsSince(options: KafkaOptions, topic: string, sinceMs: number): Promise<PartitionOffset[]> {
  const admin = createClient(options).admin()
  try {
    await admin.connect()
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, sinceMs)
    return found
      .map(({ partition, offset }) => ({ partition, offset: BigInt(offset) }))
      .sort((a, b) => a.partition - b.partition)
  } catch (error) {
    throw kafkaFault(`asking where ${topic} begins`, error)
  } finally {
    void admin.disconnect().catch(() => undefined) // a broken connection ends by itself
  }
}
