import type { Broker, RawRequest } from './raw-cluster.ts'

/*
 * Kafka gives every topic an id at its creation: a topic that is deleted and made again has another. kafkajs knows Metadata to
 * version 6; the id came with 10. This is version 12, by hand, read as far as the id.
 */

/** Reads the numbers of Kafka's compact encoding one after the other. */
class CompactReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  skip(bytes: number): void {
    this.#at += bytes
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  varint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes.readUInt8(this.#at)
      this.#at += 1
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    return value
  }

  /** Over a compact text, which may be absent: its length is one less than what is written. */
  skipText(): void {
    this.skip(Math.max(0, this.varint() - 1))
  }

  uuid(): string {
    const hex = this.#bytes.toString('hex', this.#at, this.#at + 16)
    this.#at += 16
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  }
}

function encodeRequest(topic: string): Buffer {
  const name = Buffer.from(topic)
  return Buffer.concat([
    // End of the header's tags; one topic, by its name: no id, length + 1, name, no tags.
    Buffer.from([0, 2]),
    Buffer.alloc(16),
    Buffer.from(
      name.length + 1 < 0x80 ? [name.length + 1] : [((name.length + 1) & 0x7f) | 0x80, (name.length + 1) >> 7],
    ),
    name,
    // No tags; no creation; no authorized operations; no tags.
    Buffer.from([0, 0, 0, 0]),
  ])
}

/** The id in an answer to such a request; undefined when Kafka does not know the topic. */
function decodeTopicId(answer: Buffer): string | undefined {
  const reader = new CompactReader(answer)
  reader.skip(reader.varint()) // tags of the header
  reader.skip(4) // throttle time
  for (let brokers = reader.varint() - 1; brokers > 0; brokers -= 1) {
    reader.skip(4) // id
    reader.skipText() // host
    reader.skip(4) // port
    reader.skipText() // rack
    reader.skip(reader.varint()) // tags: none is known
  }
  reader.skipText() // cluster
  reader.skip(4) // controller
  if (reader.varint() < 2) return undefined
  if (reader.int16() !== 0) return undefined
  reader.skipText() // name
  return reader.uuid()
}

/** Kafka's id of a topic. Rejects when it has none: the topic was deleted just now, or the broker is older than 3.1. */
export async function fetchTopicId(broker: Broker, topic: string): Promise<string> {
  const body = encodeRequest(topic)
  const request: RawRequest<string | undefined> = {
    request: {
      apiKey: 3,
      apiVersion: 12,
      apiName: 'Metadata',
      encode: async () => ({ buf: body, buffer: body }),
    },
    response: { decode: async (raw) => raw, parse: async (raw) => decodeTopicId(raw) },
  }
  const id = await broker.connectionPool.send(request)
  if (id === undefined) throw new Error(`Kafka names no id of ${topic}`)
  return id
}
