import { ByteReader } from './byte-reader.ts'
import { headBytes, type RequestBody } from './frame-request.ts'
import { batchBytes, type RecordBytes, writeBatch } from './record-batch-bytes.ts'

/*
 * Two requests in the form that kafkajs's connections send. kafkajs's own would fail as a whole when one topic or
 * partition is in trouble, and say of which only in a message; and its Metadata, of version 6, knows no topic's id.
 */

/**
 * A request as kafkajs's connections take them. `parse` of the answer that `decode` gave is what `send` resolves to.
 */
export interface RawRequest<Answer> {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly encode: () => Promise<RequestBody>
  }
  readonly response: {
    readonly decode: (payload: Buffer) => Promise<Answer>
    readonly parse: (answer: Answer) => Promise<Answer>
  }
  /** False: kafkajs logs no failure, because the senders here say what matters. */
  readonly logResponseError: boolean
}

/**
 * Makes a request of its number and version, its body and the reader of its answer. The memory before the body is free
 * for `freeBefore` bytes.
 */
export function rawRequest<Answer>(
  api: { readonly apiKey: number; readonly apiVersion: number; readonly apiName: string },
  body: Buffer,
  decode: (read: ByteReader) => Answer,
  freeBefore = 0,
): RawRequest<Answer> {
  return {
    request: { ...api, encode: async () => ({ buf: body, buffer: body, freeBefore }) },
    response: { decode: async (payload) => decode(new ByteReader(payload)), parse: async (answer) => answer },
    logResponseError: false,
  }
}

/** Kafka's numbers for the answers that mean something to a publisher. */
export const answerCodes = { none: 0, messageTooLarge: 10, recordListTooLarge: 18, invalidRecord: 87 } as const

/** What Kafka says of a partition. */
export interface PartitionAnswer {
  readonly topic: string
  readonly partition: number
  /** 0 when it is stored. */
  readonly errorCode: number
}

/** A batch for one partition. */
export interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly RecordBytes[]
}

function writeText(target: Buffer, at: number, text: string): number {
  const length = target.write(text, at + 2, 'utf8')
  target.writeInt16BE(length, at)
  return at + 2 + length
}

const bytesOfText = (text: string) => 2 + Buffer.byteLength(text)

const allInSyncReplicas = -1

/**
 * Stores batches with acks=all, at most one of a partition. `timeoutMs` is how long the broker may wait for replicas.
 */
export function produceRequest(batches: readonly PartitionBatch[], timeoutMs: number): RawRequest<PartitionAnswer[]> {
  const sized = batches.map((batch) => ({ ...batch, size: batchBytes(batch.records) }))
  const size = 12 + sized.reduce((sum, one) => sum + bytesOfText(one.topic) + 12 + one.size, 0)
  const body = Buffer.allocUnsafe(headBytes + size).subarray(headBytes)
  body.writeInt16BE(-1, 0) // no transaction
  body.writeInt16BE(allInSyncReplicas, 2)
  body.writeInt32BE(timeoutMs, 4)
  const topics = Map.groupBy(sized, ({ topic }) => topic)
  body.writeInt32BE(topics.size, 8)
  const nowMs = Date.now()
  let at = 12
  for (const [topic, ofTopic] of topics) {
    at = writeText(body, at, topic)
    at = body.writeInt32BE(ofTopic.length, at)
    for (const { partition, records, size } of ofTopic) {
      at = body.writeInt32BE(partition, at)
      at = body.writeInt32BE(size, at)
      at = writeBatch(body, at, records, nowMs)
    }
  }
  const api = { apiKey: 0, apiVersion: 7, apiName: 'Produce' }
  return rawRequest(api, body.subarray(0, at), decodeProduced, headBytes)
}

function decodeProduced(read: ByteReader): PartitionAnswer[] {
  const answers = read.list(() => {
    const topic = read.shortText()
    return read.list(() => {
      const answer = { topic, partition: read.int32(), errorCode: read.int16() }
      read.skip(3 * 8) // base offset, time, first offset: of no use here
      return answer
    })
  })
  return answers.flat()
}

/** Where the brokers are, and what leads what. */
export interface ClusterMetadata {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[]
  readonly topics: readonly TopicMetadata[]
}

/** Who holds a partition. */
export interface PartitionMetadata {
  readonly partition: number
  /** -1 for none. */
  readonly leader: number
  /** How many brokers should have a copy, and how many have one that is up to date. */
  readonly replicas: number
  readonly inSync: number
}

/** What Kafka says of a topic. */
export interface TopicMetadata {
  readonly name: string
  /** Given to a topic at its creation: a topic that is deleted and created again has another. */
  readonly id: string
  /** 0 when Kafka knows the topic. */
  readonly errorCode: number
  readonly partitions: readonly PartitionMetadata[]
}

/** Before a compact text or list: its length and one, in one byte or two. */
const compactLength = (length: number) =>
  Buffer.from(length < 0x7f ? [length + 1] : [((length + 1) & 0x7f) | 0x80, (length + 1) >> 7])

/** Asks about these topics, some of which may not exist; none is created. Version 12, which also names their ids. */
export function metadataRequest(topics: readonly string[]): RawRequest<ClusterMetadata> {
  const noTags = Buffer.alloc(1)
  const noId = Buffer.alloc(16)
  const wanted = topics.map((topic) => Buffer.from(topic))
  const body = Buffer.concat([
    noTags, // of the header
    compactLength(wanted.length),
    ...wanted.flatMap((name) => [noId, compactLength(name.length), name, noTags]),
    Buffer.alloc(2), // no creation, no authorized operations
    noTags,
  ])
  return rawRequest({ apiKey: 3, apiVersion: 12, apiName: 'Metadata' }, body, decodeMetadata)
}

function decodeMetadata(read: ByteReader): ClusterMetadata {
  read.skipTags()
  read.int32() // throttling
  const brokers = read.compactList(() => {
    const broker = { nodeId: read.int32(), host: read.compactText(), port: read.int32() }
    read.compactText() // rack
    return broker
  })
  read.compactText() // cluster's id
  read.int32() // controller
  const topics = read.compactList(() => {
    const [errorCode, name, id] = [read.int16(), read.compactText(), read.uuid()]
    read.skip(1) // internal
    const partitions = read.compactList(() => decodePartition(read))
    read.int32() // authorized operations
    return { name, id, errorCode, partitions: partitions.sort((a, b) => a.partition - b.partition) }
  })
  return { brokers, topics }
}

function decodePartition(read: ByteReader): PartitionMetadata {
  read.int16() // error
  const [partition, leader] = [read.int32(), read.int32()]
  read.int32() // leader's epoch
  const replicas = read.compactList(() => read.int32(), false).length
  const inSync = read.compactList(() => read.int32(), false).length
  read.compactList(() => read.int32(), false) // offline
  return { partition, leader, replicas, inSync }
}
