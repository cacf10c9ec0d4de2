import { WeirError } from '@weir/core/errors.ts'
import { openBatchProducer } from './batch-producer.ts'
import type { KafkaOptions } from './connect.ts'
import { kafkaFault } from './kafka-errors.ts'
import { missingRight } from './wire/missing-rights.ts'
import type { PartitionMetadata } from './wire/raw-requests.ts'

/** What can be wrong with a partition's copies. */
const states = {
  /** A broker with a copy is gone or behind. */
  under_replicated: ({ inSync, replicas }: PartitionMetadata) => inSync < replicas,
  /** As `weir topics` makes them, Kafka takes no record of Weir now. */
  under_min_isr: ({ inSync, replicas }: PartitionMetadata) => inSync < Math.min(minInSync, replicas),
  /** It can be neither written nor read. */
  leaderless: ({ leader }: PartitionMetadata) => leader < 0,
} as const

/** `minInsyncReplicas` of infra/kafka/topics.json. The topic's own setting takes a right of its own to read. */
export const minInSync = 2

/** A topic, what is wrong, and with how many of its partitions. */
export type TopicFault = readonly [topic: string, state: keyof typeof states, partitions: number]

/** Opens questions about the health of topics, on one connection that is kept. */
export function openTopicHealth(options: KafkaOptions) {
  const brokers = openBatchProducer(options)
  return {
    /** Every state of each topic that Kafka has. Rejects with a `KAFKA_…` error, also where one may not be seen. */
    async ask(topics: readonly string[]): Promise<TopicFault[]> {
      await brokers.learn(topics).catch((error: unknown) => {
        throw kafkaFault('asking about topics', error)
      })
      const found = brokers.topics()
      for (const { name, errorCode } of found) {
        const right = missingRight(options, 'Metadata', errorCode, name)
        if (right !== undefined) throw new WeirError('KAFKA_DENIED', right)
      }
      return found
        .filter(({ partitions }) => partitions.length > 0)
        .flatMap(({ name, partitions }) =>
          (Object.keys(states) as (keyof typeof states)[]).map(
            (state) => [name, state, partitions.filter(states[state]).length] as const,
          ),
        )
    },
    close: () => brokers.close(),
  }
}
