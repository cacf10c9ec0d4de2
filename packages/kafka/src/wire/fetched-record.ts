import { createRequire } from 'node:module'
import type { KafkaJSError } from 'kafkajs'
import { ByteReader } from './byte-reader.ts'

const requireCjs = createRequire(import.meta.url)

/** What the records of one batch share; of kafkajs's own, only what is read here. */
export interface BatchContext {
  readonly firstOffset: string
  readonly lastOffsetDelta: number
}

/** What a batch says before its records. */
interface BatchHead {
  readonly context: BatchContext
  readonly isControl: boolean
  readonly firstOffset: number
  readonly firstMs: number
  /** -1 where the producer's times count. */
  readonly appendMs: number
}

/** The parts of kafkajs's decoder that are read here. */
interface Decoder {
  readonly buffer: Buffer
  readonly offset: number
  forward(bytes: number): void
}

interface Codec {
  decompress(bytes: Buffer): Promise<Buffer>
}

const noHeaders: Readonly<Record<string, string>> = {}

/**
 * One record as a place in the answer to a fetch: kafkajs makes a dozen objects of each, which costs more than all that
 * metering does with it. Key, value and headers are made when they are asked for. The bytes are shared with the whole
 * fetch.
 */
export class FetchedRecord {
  readonly bytes: Buffer
  /** Exact up to 2^53, which no log reaches. */
  readonly position: number
  readonly timestampMs: number
  readonly isControlRecord: boolean
  readonly batchContext: BatchContext
  readonly keyStart: number
  readonly keyEnd: number
  /** -1 for a record without value. */
  readonly valueStart: number
  readonly valueEnd: number

  /** Reads the record that `reader` stands at. */
  constructor(reader: ByteReader, { context, isControl, firstOffset, firstMs, appendMs }: BatchHead) {
    const length = reader.varint()
    const end = reader.at + length
    reader.at += 1 // attributes: none is in use
    const deltaMs = reader.varint()
    this.bytes = reader.bytes
    this.position = firstOffset + reader.varint()
    this.timestampMs = appendMs >= 0 ? appendMs : firstMs + deltaMs
    this.isControlRecord = isControl
    this.batchContext = context
    const keyLength = reader.varint()
    this.keyStart = keyLength < 0 ? -1 : reader.at
    reader.at += Math.max(0, keyLength)
    this.keyEnd = reader.at
    const valueLength = reader.varint()
    this.valueStart = valueLength < 0 ? -1 : reader.at
    reader.at += Math.max(0, valueLength)
    this.valueEnd = reader.at
    reader.at = end
  }

  get offset(): string {
    return String(this.position)
  }

  get timestamp(): string {
    return String(this.timestampMs)
  }

  get key(): Buffer | null {
    return this.keyStart < 0 ? null : this.bytes.subarray(this.keyStart, this.keyEnd)
  }

  get value(): Buffer | null {
    return this.valueStart < 0 ? null : this.bytes.subarray(this.valueStart, this.valueEnd)
  }

  /** As texts; a header that came more than once is its last value. */
  get headers(): Readonly<Record<string, string>> {
    const reader = new ByteReader(this.bytes, this.valueEnd)
    const count = reader.varint()
    if (count <= 0) return noHeaders
    const headers: Record<string, string> = {}
    for (let left = count; left > 0; left -= 1) {
      const name = reader.text(reader.varint())
      const length = reader.varint()
      if (length >= 0) headers[name] = reader.text(length)
    }
    return headers
  }
}

const isLogAppendTime = 0x8
const isControlBatch = 0x20

/** Of a batch's head, from after its length; as Kafka's documentation of the record batch lists them. */
const at = { attributes: 9, lastOffsetDelta: 11, firstMs: 15, appendMs: 23, count: 45, records: 49 } as const

/** Replaces kafkajs's decoder of record batches: the same answer, in about a tenth of the time. */
export async function decodeRecordBatch(decoder: Decoder): Promise<{ records: FetchedRecord[] }> {
  const { buffer, offset } = decoder
  const firstOffset = Number(buffer.readBigInt64BE(offset))
  const length = buffer.readInt32BE(offset + 8)
  const start = offset + 12
  if (start + length > buffer.length) {
    const errors: { KafkaJSPartialMessageError: new (text: string) => KafkaJSError } = requireCjs('kafkajs/src/errors')
    throw new errors.KafkaJSPartialMessageError('the end of the answer cuts a batch')
  }
  decoder.forward(12 + length)
  const attributes = buffer.readInt16BE(start + at.attributes)
  const context = {
    firstOffset: String(firstOffset),
    lastOffsetDelta: buffer.readInt32BE(start + at.lastOffsetDelta),
  }
  const firstMs = Number(buffer.readBigInt64BE(start + at.firstMs))
  const appendMs = (attributes & isLogAppendTime) > 0 ? Number(buffer.readBigInt64BE(start + at.appendMs)) : -1
  const count = buffer.readInt32BE(start + at.count)
  const compression: { lookupCodecByAttributes(attributes: number): Codec | null } = requireCjs(
    'kafkajs/src/protocol/message/compression',
  )
  const codec = compression.lookupCodecByAttributes(attributes)
  const isControl = (attributes & isControlBatch) > 0
  const recordsAt = start + at.records
  const reader =
    codec === null
      ? new ByteReader(buffer, recordsAt)
      : new ByteReader(await codec.decompress(buffer.subarray(recordsAt, start + length)))
  const head = { context, isControl, firstOffset, firstMs, appendMs }
  const records: FetchedRecord[] = []
  for (let left = count; left > 0; left -= 1) records.push(new FetchedRecord(reader, head))
  return { records }
}

interface PartitionData {
  readonly partition: number
  readonly highWatermark: string
  readonly messages: readonly FetchedRecord[]
  readonly abortedTransactions?: readonly unknown[]
}

/** Throws if a record has a format of before Kafka 0.11, which kafkajs itself still decodes, without a position. */
export function fetchedRecords(messages: readonly object[]): readonly FetchedRecord[] {
  return messages.map((message) => {
    if (message instanceof FetchedRecord) return message
    throw new Error(`record ${'offset' in message ? message.offset : ''} has a format of before Kafka 0.11`)
  })
}

interface BatchClass {
  readonly prototype: object
}

/**
 * Replaces kafkajs's Batch, which works with every record's offset as a text. Transactions go the old way: no program
 * here writes any, and reading them right is not for us to write again.
 */
export function lightBatch(Original: BatchClass & (new (...all: never) => object)): unknown {
  function LightBatch(topic: string, fetchedOffset: string, data: PartitionData): object {
    const { messages, abortedTransactions } = data
    if (messages.some(({ isControlRecord }) => isControlRecord) || (abortedTransactions ?? []).length > 0) {
      return Reflect.construct(Original, [topic, fetchedOffset, data])
    }
    const from = Number(fetchedOffset)
    // A batch is given whole when only its rest was asked for.
    const isWhole = (messages[0]?.position ?? from) >= from
    const within = isWhole ? messages : messages.filter(({ position }) => position >= from)
    return Object.assign(Object.create(Original.prototype), {
      topic,
      partition: data.partition,
      highWatermark: data.highWatermark,
      fetchedOffset,
      rawMessages: messages,
      messagesWithinOffset: within,
      messages: within,
    })
  }
  LightBatch.prototype = Original.prototype
  return LightBatch
}
