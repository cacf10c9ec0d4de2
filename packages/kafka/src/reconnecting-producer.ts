import type { Message, Producer, RecordMetadata } from 'kafkajs'
import { createClient, type KafkaOptions, requestTimeoutMs } from './connect.ts'
import { isDenied, reasonOf } from './kafka-errors.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'

/** Something that sends to Kafka now and then: whether it may is known only then. */
export interface Deniable {
  /**
   * Which variable or right kept the last records of a topic from Kafka; undefined once it has taken some. For /readyz.
   */
  readonly denied: { readonly warning: string } | undefined
}

export interface ReconnectingProducer extends Deniable {
  /** One attempt with acks=all. Rejects with kafkajs's error. */
  send(topic: string, messages: Message[]): Promise<RecordMetadata[]>
  close(): Promise<void>
}

/** So many failures in a row and the client is thrown away with all it believes about the cluster. */
const failuresPerClient = 3

/** Connects at the first use, again after failures, and never by itself: the caller decides when to try again. */
export function createProducer(options: KafkaOptions): ReconnectingProducer {
  let connecting: Promise<Producer> | undefined
  let failures = 0
  const denials = new Map<string, string>() // by topic

  const connect = async () => {
    const producer = createClient({ ...options, purpose: 'Write' }).producer({
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner, // named, because kafkajs warns on stdout otherwise
      retry: { retries: 0 },
      metadataMaxAge: 60_000, // a raised partition count is seen within a minute
    })
    await producer.connect()
    return producer
  }
  const forget = () => {
    const old = connecting
    connecting = undefined
    failures = 0
    return old?.then((producer) => producer.disconnect()).catch(() => undefined) // a broken connection ends by itself
  }

  return {
    get denied() {
      return denials.size === 0 ? undefined : { warning: [...new Set(denials.values())].join('; ') }
    },
    async send(topic, messages) {
      connecting ??= connect()
      const mine = connecting
      try {
        const producer = await mine
        const answer = await producer.send({ topic, messages, acks: -1, timeout: requestTimeoutMs })
        failures = 0
        denials.delete(topic)
        return answer
      } catch (error) {
        failures += 1
        if (isDenied(error)) denials.set(topic, reasonOf(error))
        const neverConnected = await mine.then(
          () => false,
          () => true,
        )
        if (connecting === mine && (neverConnected || failures >= failuresPerClient)) void forget()
        throw error
      }
    },
    async close() {
      await forget()
    },
  }
}
