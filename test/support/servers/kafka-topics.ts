import { randomUUID } from 'node:crypto'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics, type TopicSpec } from '@weir/kafka/topics-file.ts'
import { createLogger } from '@weir/runtime/logger.ts'

/** How a test reaches Kafka. */
export function kafkaOptions(address: string): KafkaOptions {
  return { brokers: [address], clientId: `test-${randomUUID()}`, log: createLogger('test', 'silent') }
}

/** Creates the topics of Weir. */
export const createWeirTopics = async (address: string) => ensureTopics(kafkaOptions(address), await readTopics())

/** A topic that no other test knows. */
export function topicSpec(partitions: number): TopicSpec {
  return {
    name: `test.${randomUUID()}`,
    partitions,
    replicationFactor: 1,
    minInsyncReplicas: 1,
    config: { 'retention.ms': '3600000' },
  }
}

/** Creates such a topic and names it. */
export async function createTopic(options: KafkaOptions, partitions: number): Promise<string> {
  const spec = topicSpec(partitions)
  await ensureTopics(options, [spec])
  return spec.name
}

type Admin = ReturnType<ReturnType<typeof createClient>['admin']>

/** Asks or changes something as a client of Kafka's own, and leaves. */
export async function withAdmin<T>(options: KafkaOptions, use: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = createClient(options).admin()
  await admin.connect()
  return use(admin).finally(() => admin.disconnect())
}
