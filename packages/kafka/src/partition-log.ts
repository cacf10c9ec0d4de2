import { createCluster, type KafkaOptions } from './connect.ts'
import { type FetchedPartition, findLeader } from './wire/raw-cluster.ts'

/*
 * Whoever wants the whole of one partition for himself, and nobody to divide it with, would pay for a consumer group with
 * seconds at each join, with commits, and with groups left behind by processes that were killed. So this asks for the partition
 * below kafkajs's consumer.
 */

export interface LogRecord {
  readonly offset: bigint
  readonly key: Buffer | null
  /** Shares its memory with the whole fetch. */
  readonly value: Buffer | null
}

export interface LogPart {
  readonly records: readonly LogRecord[]
  /** Where to read on. */
  readonly next: bigint
  /** Offset after the last record that every in-sync replica has. */
  readonly end: bigint
}

/** One partition of one topic, on a connection of its own. */
export interface PartitionLog {
  /** Offsets of the first record, and after the last. */
  range(): Promise<{ readonly first: bigint; readonly end: bigint }>
  /** Answers as soon as there is a record from `from` on, and else after `maxWaitMs`. Rejects when the log does not reach there. */
  read(from: bigint): Promise<LogPart>
  close(): Promise<void>
}

/** Kafka is asked so often when nothing changes: often enough to know that it is there, and below the time a request may take. */
export const maxWaitMs = 5_000
/** A fetch is decoded in one go: more would hold up requests for longer than some milliseconds. A larger batch comes whole. */
const fetchBytesMax = 1024 * 1024

const partition = 0

/** Connects to the leader of the topic's partition 0. Rejects with kafkajs's error when Kafka is away or has no such topic. */
export async function openPartitionLog(options: KafkaOptions, topic: string): Promise<PartitionLog> {
  const cluster = createCluster({ ...options, purpose: 'Read' })
  const close = () => cluster.disconnect().catch(() => undefined) // a broken connection ends by itself
  try {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    const broker = await findLeader(cluster, topic, partition)
    const offset = async (fromBeginning: boolean) => {
      const [found] = await cluster.fetchTopicsOffset([{ topic, partitions: [{ partition }], fromBeginning }])
      const text = found?.partitions[0]?.offset
      if (text === undefined) throw new Error(`no offset of ${topic}`)
      return BigInt(text)
    }
    return {
      // The end last: it is not before the first.
      range: async () => ({ first: await offset(true), end: await offset(false) }),
      async read(from) {
        const wanted = { partition, fetchOffset: String(from), maxBytes: fetchBytesMax }
        const { responses } = await broker.fetch({
          ...{ replicaId: -1, isolationLevel: 0, maxWaitTime: maxWaitMs, minBytes: 1, maxBytes: fetchBytesMax },
          topics: [{ topic, partitions: [wanted] }],
        })
        const found = responses[0]?.partitions[0]
        if (found === undefined) throw new Error(`Kafka answered without the partition of ${topic}`)
        return partOf(found, from)
      },
      close,
    }
  } catch (error) {
    void close()
    throw error
  }
}

/** A compacted batch keeps its last offset without its last record, and is given whole when only its rest was asked for. */
function partOf({ messages, highWatermark }: FetchedPartition, from: bigint): LogPart {
  const end = BigInt(highWatermark)
  const last = messages.at(-1)?.batchContext
  // Without a record before the end, all that was there is compacted away.
  const next = last === undefined ? end : BigInt(last.firstOffset) + BigInt(last.lastOffsetDelta) + 1n
  const records = messages
    .filter(({ isControlRecord, offset }) => !isControlRecord && BigInt(offset) >= from)
    .map(({ offset, key, value }) => ({ offset: BigInt(offset), key, value }))
  return { records, next: next > from ? next : from, end }
}
