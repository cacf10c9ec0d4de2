import { WeirError } from '@weir/core/errors.ts'
import { createCluster, type KafkaOptions } from './connect.ts'
import { kafkaFault } from './kafka-errors.ts'
import { type Cluster, findLeader } from './wire/raw-cluster.ts'
import { fetchTopicId } from './wire/topic-id.ts'

/** What a group has committed for a partition. */
export interface Committed {
  readonly offset: bigint
  readonly metadata: string
}

/** What Kafka knows of a partition and a group's place in it. */
export interface PartitionFacts {
  /** Undefined when the group has none. */
  readonly committed: Committed | undefined
  /** Offset of the first record that is still there. */
  readonly first: bigint
  /** Offset after the last record. */
  readonly end: bigint
  /** Which life of the topic this is: a topic that is deleted and made again has another, and counts from 0 again. */
  readonly topicId: string
}

export interface RangeRecord {
  readonly offset: bigint
  readonly key: Buffer | null
  /** Shares its memory with the whole fetch. */
  readonly value: Buffer | null
  /** As texts. */
  readonly headers: Readonly<Record<string, string>>
  /** When the broker appended the record, in milliseconds since the epoch. */
  readonly timestampMs: number
}

/** Questions about the partitions of a group's topics, on connections of their own. All reject with `KAFKA_…` errors. */
export interface PartitionAdmin {
  describe(topic: string, partition: number): Promise<PartitionFacts>
  /** All records from the first to the last offset, both included. Their bytes together are the caller's to bound. */
  readRange(topic: string, partition: number, from: bigint, to: bigint): Promise<RangeRecord[]>
  /**
   * Commits for a group that has no members; Kafka refuses it otherwise. For people: a consumer commits for itself.
   */
  commit(topic: string, partition: number, offset: bigint, metadata: string): Promise<void>
  close(): Promise<void>
}

/** Of one fetch: more than a block of any consumer, so that a range mostly comes in one. */
const fetchBytesMax = 8_000_000
/** A range lies in the past: what is not there at once will not come. */
const fetchWaitMs = 1_000

/** Asks of a connected cluster. */
function adminOf(cluster: Cluster, groupId: string): Omit<PartitionAdmin, 'close'> {
  const edge = async (topic: string, partition: number, fromBeginning: boolean) => {
    const [found] = await cluster.fetchTopicsOffset([{ topic, partitions: [{ partition }], fromBeginning }])
    const text = found?.partitions[0]?.offset
    if (text === undefined) throw new Error(`Kafka names no offset of ${topic}`)
    return BigInt(text)
  }
  return {
    async describe(topic, partition) {
      await cluster.addTargetTopic(topic)
      const coordinator = await cluster.findGroupCoordinator({ groupId })
      const { responses } = await coordinator.offsetFetch({ groupId, topics: [{ topic, partitions: [{ partition }] }] })
      const found = responses[0]?.partitions[0]
      const offset = BigInt(found?.offset ?? '-1')
      const leader = await findLeader(cluster, topic, partition)
      return {
        committed: offset < 0n ? undefined : { offset, metadata: found?.metadata ?? '' },
        // The end last: it is not before the first.
        first: await edge(topic, partition, true),
        end: await edge(topic, partition, false),
        topicId: await fetchTopicId(leader, topic),
      }
    },
    async readRange(topic, partition, from, to) {
      await cluster.addTargetTopic(topic)
      const leader = await findLeader(cluster, topic, partition)
      const records: RangeRecord[] = []
      for (let next = from; next <= to; ) {
        const { responses } = await leader.fetch({
          ...{ replicaId: -1, isolationLevel: 0, maxWaitTime: fetchWaitMs, minBytes: 1, maxBytes: fetchBytesMax },
          topics: [{ topic, partitions: [{ partition, fetchOffset: String(next), maxBytes: fetchBytesMax }] }],
        })
        const found = responses[0]?.partitions[0]
        const last = found?.messages.at(-1)?.batchContext
        if (found === undefined || last === undefined) {
          throw new Error(
            `${topic}, partition ${partition}: Kafka gives no records from ${next} on, of ${from} to ${to}`,
          )
        }
        for (const { offset: text, key, value, headers, timestampMs, isControlRecord } of found.messages) {
          const offset = BigInt(text)
          if (offset < next || offset > to || isControlRecord) continue
          records.push({ offset, key, value, headers, timestampMs })
        }
        next = BigInt(last.firstOffset) + BigInt(last.lastOffsetDelta) + 1n
      }
      return records
    },
    async commit(topic, partition, offset, metadata) {
      const coordinator = await cluster.findGroupCoordinator({ groupId })
      await coordinator.offsetCommit({
        groupId,
        groupGenerationId: -1, // of nobody who is a member
        memberId: '',
        topics: [{ topic, partitions: [{ partition, offset: String(offset), metadata }] }],
      })
    },
  }
}

/** Connects at the first question, and anew after one that failed. */
export function openPartitionAdmin(options: KafkaOptions, groupId: string): PartitionAdmin {
  let connecting: Promise<Cluster> | undefined
  const connect = async () => {
    const cluster = createCluster(options)
    await cluster.connect()
    return cluster
  }
  const forget = async () => {
    const old = connecting
    connecting = undefined
    await old?.then((cluster) => cluster.disconnect()).catch(() => undefined) // a broken connection ends by itself
  }
  const ask = async <T>(what: string, question: (admin: Omit<PartitionAdmin, 'close'>) => Promise<T>): Promise<T> => {
    connecting ??= connect()
    const mine = connecting
    try {
      return await question(adminOf(await mine, groupId))
    } catch (error) {
      if (connecting === mine) void forget()
      if (error instanceof WeirError) throw error
      throw kafkaFault(what, error)
    }
  }
  const named = (topic: string, partition: number) => `partition ${partition} of ${topic}`
  return {
    describe: (topic, partition) =>
      ask(`asking about ${named(topic, partition)}`, (admin) => admin.describe(topic, partition)),
    readRange: (topic, partition, from, to) =>
      ask(`reading ${from} to ${to} of ${named(topic, partition)}`, (admin) =>
        admin.readRange(topic, partition, from, to),
      ),
    commit: (topic, partition, offset, metadata) =>
      ask(`committing ${offset} for ${named(topic, partition)}`, (admin) =>
        admin.commit(topic, partition, offset, metadata),
      ),
    close: forget,
  }
}
