import { createCluster, type KafkaOptions } from './connect.ts'
import { edgeOffset, fetchFrom, fetchTopicId, findLeader } from './wire/raw-cluster.ts'

/*
 * A process that reads the whole of one partition, and shares it with no other, would pay for a consumer group with
 * seconds at each join, with commits, and with groups left behind by processes that were killed. So this asks for the
 * partition below kafkajs's consumer.
 */

/** A record as it is read. */
export interface LogRecord {
  readonly offset: bigint
  readonly key: Buffer | null
  /** Shares its memory with the whole fetch: copy what is to outlive the batch. */
  readonly value: Buffer | null
  /** Texts; a header that came more than once is its last value. */
  readonly headers: Readonly<Record<string, string>>
  /** When the broker appended the record, in milliseconds since the epoch. */
  readonly timestampMs: number
  /** Why the record, with a batch's bytes as its value, stands for all of that batch; absent for a record. */
  readonly fault?: string | undefined
}

/**
 * The longest time between two requests when nothing changes: short enough to know that Kafka is up, and below the time
 * a request may take.
 */
export const maxWaitMs = 5_000
/**
 * A fetch is decoded in one go: more would hold up requests for longer than some milliseconds. A larger batch comes
 * whole.
 */
export const fetchBytesMax = 1024 * 1024

const partition = 0

/**
 * Opens one topic's partition 0 on a connection of its own, to its leader. Rejects with kafkajs's error when Kafka is
 * away or has no such topic.
 */
export async function openPartitionLog(options: KafkaOptions, topic: string) {
  const cluster = createCluster({ ...options, purpose: 'Read' })
  const close = () => cluster.disconnect().catch(() => undefined) // a broken connection ends by itself
  try {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    const broker = await findLeader(cluster, topic, partition)
    return {
      /** Kafka's id of the topic: one that was deleted and made again has another. */
      topicId: () => fetchTopicId(broker, topic),
      /** Offsets of the first record, and after the last: asked for last, so that it is not before the first. */
      range: async () => ({
        first: await edgeOffset(cluster, topic, partition, 'first'),
        end: await edgeOffset(cluster, topic, partition, 'end'),
      }),
      /**
       * Answers as soon as there is a record from `from` on, and else after `maxWaitMs`. `next` is where to read on,
       * and `end` follows the last record that every in-sync replica has. Rejects when the log does not reach there.
       */
      async read(from: bigint) {
        const wanted = { topic, partition, offset: from, waitMs: maxWaitMs, bytesMax: fetchBytesMax }
        // Without a record before the end, all that was there is compacted away.
        const { records, end, next = end } = await fetchFrom(broker, wanted)
        return { records, next: next > from ? next : from, end }
      },
      close,
    }
  } catch (error) {
    void close()
    throw error
  }
}

/** One partition that is open for reading. */
export type PartitionLog = Awaited<ReturnType<typeof openPartitionLog>>
