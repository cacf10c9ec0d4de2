import { createClient, createCluster, type KafkaOptions } from './connect.ts'
import { kafkaFault } from './kafka-errors.ts'
import type { LogRecord } from './partition-log.ts'
import { type Cluster, edgeOffset, fetchFrom, fetchTopicId, findLeader } from './wire/raw-cluster.ts'

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

/** Of one fetch: more than a block of any consumer, so that a range mostly comes in one. */
const fetchBytesMax = 8_000_000
/** A range lies in the past: what is not there now will not come. */
const fetchWaitMs = 1_000

/** All brokers, as long as no question has failed. */
interface Connection {
  readonly cluster: Promise<Cluster>
  /** Under way. */
  questions: number
}

/** A broken connection ends by itself. */
const disconnect = ({ cluster }: Connection) => cluster.then((one) => one.disconnect()).catch(() => undefined)

const named = (topic: string, partition: number) => `partition ${partition} of ${topic}`

/**
 * Questions about the partitions of a group's topics, on connections of their own. Connects at the first question, and
 * again after one that failed. All reject with `KAFKA_…` errors.
 */
export class PartitionAdmin {
  readonly #options: KafkaOptions
  readonly #groupId: string
  #connection: Connection | undefined

  constructor(options: KafkaOptions, groupId: string) {
    this.#options = options
    this.#groupId = groupId
  }

  async #connect(): Promise<Cluster> {
    const cluster = createCluster(this.#options)
    await cluster.connect()
    return cluster
  }

  async #ask<T>(what: string, question: (cluster: Cluster) => Promise<T>): Promise<T> {
    this.#connection ??= { cluster: this.#connect(), questions: 0 }
    const mine = this.#connection
    mine.questions += 1
    try {
      return await question(await mine.cluster)
    } catch (error) {
      if (this.#connection === mine) this.#connection = undefined
      throw kafkaFault(what, error)
    } finally {
      mine.questions -= 1
      // kafkajs never answers what is asked on a connection that is closed meanwhile: the last question closes it.
      if (mine.questions === 0 && this.#connection !== mine) void disconnect(mine)
    }
  }

  describe(topic: string, partition: number): Promise<PartitionFacts> {
    return this.#ask(`asking about ${named(topic, partition)}`, async (cluster) => {
      await cluster.addTargetTopic(topic)
      const committed = await this.#committed(cluster, topic, [partition])
      const leader = await findLeader(cluster, topic, partition)
      return {
        committed: committed.get(partition),
        // The end last: it is not before the first.
        first: await edgeOffset(cluster, topic, partition, 'first'),
        end: await edgeOffset(cluster, topic, partition, 'end'),
        topicId: await fetchTopicId(leader, topic),
      }
    })
  }

  /** What the group has committed for partitions, in this order; those without a commit are left out. */
  committed(topic: string, partitions: readonly number[]): Promise<ReadonlyMap<number, Committed>> {
    const what = `fetching offsets for ${topic}`
    return this.#ask(what, (cluster) => this.#committed(cluster, topic, partitions))
  }

  async #committed(cluster: Cluster, topic: string, partitions: readonly number[]): Promise<Map<number, Committed>> {
    const groupId = this.#groupId
    const coordinator = await cluster.findGroupCoordinator({ groupId })
    const wanted = partitions.map((partition) => ({ partition }))
    const { responses } = await coordinator.offsetFetch({ groupId, topics: [{ topic, partitions: wanted }] })
    const found = new Map<number, Committed>()
    for (const { partition, offset, metadata } of responses[0]?.partitions ?? []) {
      if (BigInt(offset) >= 0n) found.set(partition, { offset: BigInt(offset), metadata: metadata ?? '' })
    }
    return new Map(
      partitions.flatMap((partition) => {
        const one = found.get(partition)
        return one === undefined ? [] : [[partition, one] as const]
      }),
    )
  }

  /** All records from the first to the last offset, both included. Their bytes together are the caller's to bound. */
  readRange(topic: string, partition: number, from: bigint, to: bigint): Promise<LogRecord[]> {
    const what = `reading ${from} to ${to} of ${named(topic, partition)}`
    return this.#ask(what, async (cluster) => {
      await cluster.addTargetTopic(topic)
      const leader = await findLeader(cluster, topic, partition)
      const range: LogRecord[] = []
      for (let offset = from; offset <= to; ) {
        const wanted = { topic, partition, offset, waitMs: fetchWaitMs, bytesMax: fetchBytesMax }
        const { records, next } = await fetchFrom(leader, wanted)
        if (next === undefined) throw new Error(`Kafka gives no records from ${offset} on`)
        range.push(...records.filter((record) => record.offset <= to))
        offset = next
      }
      return range
    })
  }

  /** Commits for a group that has no members; Kafka refuses it otherwise. For people: a consumer commits for itself. */
  commit(topic: string, partition: number, offset: bigint, metadata: string): Promise<void> {
    return this.#ask(`committing ${offset} for ${named(topic, partition)}`, async (cluster) => {
      const groupId = this.#groupId
      const coordinator = await cluster.findGroupCoordinator({ groupId })
      await coordinator.offsetCommit({
        groupId,
        groupGenerationId: -1, // as no member
        memberId: '',
        topics: [{ topic, partitions: [{ partition, offset: String(offset), metadata }] }],
      })
    })
  }

  async close(): Promise<void> {
    const old = this.#connection
    this.#connection = undefined
    if (old !== undefined) await disconnect(old)
  }
}

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
