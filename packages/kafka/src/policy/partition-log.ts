import { createClient, type KafkaOptions } from '../connect.ts'

/*
 * kafkajs reads only as the member of a consumer group. Whoever wants the whole of one partition for himself, and nobody
 * to divide it with, would pay for a group with seconds at each join, with commits, and with groups left behind by processes
 * that were killed. So this asks for the partition by kafkajs's own request, below its consumer.
 */

/** One record as kafkajs decodes it. */
interface FetchedRecord {
  readonly offset: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly isControlRecord: boolean
  readonly batchContext: { readonly firstOffset: string; readonly lastOffsetDelta: number }
}

interface FetchedPartition {
  readonly highWatermark: string
  readonly messages: readonly FetchedRecord[]
}

interface FetchRequest {
  readonly replicaId: number
  readonly isolationLevel: number
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly fetchOffset: string
      readonly maxBytes: number
    }[]
  }[]
}

interface TopicOffsets {
  readonly partitions: readonly { readonly partition: number; readonly offset: string }[]
}

interface Cluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  addTargetTopic(topic: string): Promise<void>
  findLeaderForPartitions(topic: string, partitions: readonly number[]): Readonly<Record<string, readonly number[]>>
  findBroker(of: { nodeId: string }): Promise<{
    fetch(request: FetchRequest): Promise<{ responses: readonly { partitions: readonly FetchedPartition[] }[] }>
  }>
  fetchTopicsOffset(
    of: readonly { topic: string; partitions: readonly { partition: number }[]; fromBeginning: boolean }[],
  ): Promise<readonly TopicOffsets[]>
}

type CreateCluster = (options: { metadataMaxAge: number; allowAutoTopicCreation: boolean }) => Cluster

/** A client's own way to make a cluster, which kafkajs keeps under a symbol. */
function clusterOf(options: KafkaOptions): Cluster {
  const client = createClient(options)
  const symbol = Object.getOwnPropertySymbols(client).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )
  const create: CreateCluster | undefined = symbol === undefined ? undefined : Reflect.get(client, symbol)
  if (create === undefined) throw new Error('kafkajs cannot make a cluster: is it still version 2.2.4?')
  return create({ metadataMaxAge: 300_000, allowAutoTopicCreation: false })
}

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
  const cluster = clusterOf(options)
  const close = () => cluster.disconnect().catch(() => undefined) // a broken connection ends by itself
  try {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    const leader = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))[0]
    if (leader === undefined) throw new Error(`${topic} has no partition ${partition}`)
    const broker = await cluster.findBroker({ nodeId: leader })
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
