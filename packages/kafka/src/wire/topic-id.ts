import type { ByteReader } from './byte-reader.ts'
import type { Broker } from './raw-cluster.ts'
import { rawRequest } from './raw-requests.ts'

/*
 * Kafka gives every topic an id at its creation: a topic that is deleted and made again has another. kafkajs knows
 * Metadata to version 6; the id came with 10. This is version 12, by hand, read as far as the id.
 */

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
function decodeTopicId(read: ByteReader): string | undefined {
  read.skip(read.unsignedVarint()) // tags of the header
  read.skip(4) // throttle time
  for (let brokers = read.unsignedVarint() - 1; brokers > 0; brokers -= 1) {
    read.skip(4) // id
    read.skipCompactText() // host
    read.skip(4) // port
    read.skipCompactText() // rack
    read.skip(read.unsignedVarint()) // tags: none is known
  }
  read.skipCompactText() // cluster
  read.skip(4) // controller
  if (read.unsignedVarint() < 2) return undefined
  if (read.int16() !== 0) return undefined
  read.skipCompactText() // name
  return read.uuid()
}

/** Kafka's id of a topic. Rejects when it has none: the topic was deleted just now, or the broker is older than 3.1. */
export async function fetchTopicId(broker: Broker, topic: string): Promise<string> {
  const api = { apiKey: 3, apiVersion: 12, apiName: 'Metadata' }
  const id = await broker.connectionPool.send(rawRequest(api, encodeRequest(topic), decodeTopicId))
  if (id === undefined) throw new Error(`Kafka names no id of ${topic}`)
  return id
}
