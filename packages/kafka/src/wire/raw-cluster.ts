import type { Kafka, Broker as KafkaBroker, Cluster as KafkaCluster } from 'kafkajs'
import { fetchWithin } from './decompress.ts'
import { type FetchedRecord, fetchedRecords } from './fetched-record.ts'
import { metadataRequest, type RawRequest } from './raw-requests.ts'

/*
 * kafkajs reads only as the member of a consumer group, and its admin client commits without metadata and names no
 * topic's id. What needs that goes by kafkajs's own requests, below its consumer and its admin client.
 */

/** A group's places in topics. kafkajs's types know no metadata of an offset. */
interface GroupOffsets {
  readonly topic: string
  readonly partitions: readonly { readonly partition: number; readonly offset: string; readonly metadata: string }[]
}

/** A broker's connection, with what kafkajs's types leave open. */
export interface Broker {
  fetch(
    request: Parameters<KafkaBroker['fetch']>[0],
  ): Promise<{
    responses: readonly {
      partitions: readonly {
        readonly partition: number
        readonly highWatermark: string
        readonly messages: readonly FetchedRecord[]
      }[]
    }[]
  }>
  offsetFetch(request: {
    groupId: string
    topics: readonly { topic: string; partitions: readonly { partition: number }[] }[]
  }): Promise<{ responses: readonly GroupOffsets[] }>
  offsetCommit(request: {
    groupId: string
    groupGenerationId: number
    memberId: string
    topics: readonly GroupOffsets[]
  }): Promise<unknown>
  readonly connectionPool: { send<T>(request: RawRequest<T>): Promise<T> }
}

/** kafkajs's view of all brokers. */
export type Cluster = Omit<KafkaCluster, 'findBroker' | 'findGroupCoordinator'> & {
  findBroker(of: { nodeId: string }): Promise<Broker>
  findGroupCoordinator(of: { groupId: string }): Promise<Broker>
}

type CreateCluster = (options: { metadataMaxAge: number; allowAutoTopicCreation: boolean }) => Cluster

/** A client's own way to make a cluster, which kafkajs keeps under a symbol. Nothing is connected yet. */
export function clusterOf(client: Kafka): Cluster {
  const symbol = Object.getOwnPropertySymbols(client).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )
  const create: CreateCluster | undefined = symbol === undefined ? undefined : Reflect.get(client, symbol)
  if (create === undefined) throw new Error('kafkajs cannot make a cluster: is it still version 2.2.4?')
  return create({ metadataMaxAge: 300_000, allowAutoTopicCreation: false })
}

/** The connection to the leader of a partition of a topic that was added. */
export async function findLeader(cluster: Cluster, topic: string, partition: number): Promise<Broker> {
  const leader = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))[0]
  if (leader === undefined) throw new Error(`${topic} has no partition ${partition}`)
  return cluster.findBroker({ nodeId: leader })
}

/** Asks for the offset of a partition's first record, or the one after its last. */
export async function edgeOffset(
  cluster: Cluster,
  topic: string,
  partition: number,
  edge: 'first' | 'end',
): Promise<bigint> {
  const fromBeginning = edge === 'first'
  const [found] = await cluster.fetchTopicsOffset([{ topic, partitions: [{ partition }], fromBeginning }])
  const text = found?.partitions[0]?.offset
  if (text === undefined) throw new Error(`Kafka names no offset of ${topic}`)
  return BigInt(text)
}

interface FetchFrom {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** How long the broker waits for a first record. */
  readonly waitMs: number
  /** A larger batch comes whole. */
  readonly bytesMax: number
}

/** Where partitions of one leader are read on, by partition. */
type FetchParts = Omit<FetchFrom, 'partition' | 'offset'> & { readonly positions: ReadonlyMap<number, bigint> }

/**
 * Fetches records of some partitions from their leader. `next` follows the last of a partition's batches; undefined
 * without any. `end` is the offset after the last record that every in-sync replica has.
 */
export async function fetchParts(leader: Broker, { topic, positions, waitMs, bytesMax }: FetchParts) {
  const wanted = [...positions].map(([partition, offset]) => {
    return { partition, fetchOffset: String(offset), maxBytes: bytesMax }
  })
  const limits = { maxWaitTime: waitMs, minBytes: 1, maxBytes: bytesMax }
  const topics = [{ topic, partitions: wanted }]
  const ask = () => leader.fetch({ replicaId: -1, isolationLevel: 0, ...limits, topics })
  const { responses } = await fetchWithin(bytesMax, ask)
  const found = responses[0]?.partitions ?? []
  return found.map(({ partition, messages, highWatermark }) => {
    const last = messages.at(-1)?.batchContext
    // A compacted batch keeps its last offset without its last record.
    const next = last === undefined ? undefined : BigInt(last.firstOffset) + BigInt(last.lastOffsetDelta) + 1n
    // A batch is given whole when only its rest was asked for.
    const records = fetchedRecords(messages)
      .filter(({ isControlRecord, position }) => !isControlRecord && position >= (positions.get(partition) ?? 0n))
      .map(({ position, key, value, headers, timestampMs, fault }) => {
        return { offset: BigInt(position), key, value, headers, timestampMs, fault }
      })
    return { partition, records, end: BigInt(highWatermark), next }
  })
}

/** Fetches records of one partition from its leader, as `fetchParts` does. */
export async function fetchFrom(leader: Broker, { partition, offset, ...more }: FetchFrom) {
  const [found] = await fetchParts(leader, { ...more, positions: new Map([[partition, offset]]) })
  if (found === undefined) throw new Error(`Kafka answered without the partition of ${more.topic}`)
  return found
}

/** Returns Kafka's id of a topic. Rejects without one: the topic was deleted just now, or the broker is below 3.1. */
export async function fetchTopicId(broker: Broker, topic: string): Promise<string> {
  const { topics } = await broker.connectionPool.send(metadataRequest([topic]))
  const [found] = topics
  if (found === undefined || found.errorCode !== 0) throw new Error(`Kafka names no id of ${topic}`)
  return found.id
}
