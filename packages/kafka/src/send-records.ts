import type { Producer, RecordMetadata } from 'kafkajs'
import { createClient, type KafkaOptions, requestTimeoutMs } from './connect.ts'
import { isDenied, kafkaFault, reasonOf } from './kafka-errors.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'

/** A record before it has an offset. */
export interface RecordToSend {
  readonly key: string
  /** Null deletes the key on a compacted topic. */
  readonly value: string | Buffer | null
  readonly headers?: Readonly<Record<string, string>>
  /** Follows from the key unless it is given. */
  readonly partition?: number
}

/** Sends few records that a caller waits for, such as alerts. */
export interface RecordSender {
  /**
   * Resolves when every in-sync replica has all records. Rejects with `KAFKA_UNAVAILABLE` (some or all may have been
   * stored: sending again repeats them), `KAFKA_DENIED` or `KAFKA_REFUSED`; never retries by itself.
   */
  send(topic: string, records: readonly RecordToSend[]): Promise<unknown>
  close(): Promise<void>
}

/** So many failures in a row and the client is thrown away with all it believes about the cluster. */
const failuresPerClient = 3

async function connect(options: KafkaOptions): Promise<Producer> {
  const producer = createClient({ ...options, purpose: 'Write' }).producer({
    allowAutoTopicCreation: false,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner, // named, because kafkajs warns on stdout otherwise
    retry: { retries: 0 },
    metadataMaxAge: 60_000, // a raised partition count is seen within a minute
  })
  await producer.connect()
  return producer
}

/** Connects at the first record, again after failures, and never by itself: the caller decides when to try again. */
export function createRecordSender(options: KafkaOptions) {
  let connecting: Promise<Producer> | undefined
  let failures = 0
  const denials = new Map<string, string>() // by topic

  const forget = () => {
    const old = connecting
    connecting = undefined
    failures = 0
    return old?.then((producer) => producer.disconnect()).catch(() => undefined) // a broken connection ends by itself
  }

  return {
    /**
     * Which variable or right kept the last records of a topic from Kafka; undefined once it has taken some. For
     * /readyz.
     */
    get denied() {
      return denials.size === 0 ? undefined : { warning: [...new Set(denials.values())].join('; ') }
    },
    /** See `RecordSender`. Says of each partition where its records begin. */
    async send(topic: string, records: readonly RecordToSend[]): Promise<readonly RecordMetadata[]> {
      if (records.length === 0) return []
      connecting ??= connect(options)
      const mine = connecting
      let isConnected = false
      try {
        const producer = await mine
        isConnected = true
        const messages = records.map((record) => ({ ...record, headers: { ...record.headers } }))
        const answer = await producer.send({ topic, messages, acks: -1, timeout: requestTimeoutMs })
        failures = 0
        denials.delete(topic)
        return answer
      } catch (error) {
        failures += 1
        if (isDenied(error)) denials.set(topic, reasonOf(error))
        if (connecting === mine && (!isConnected || failures >= failuresPerClient)) void forget()
        throw kafkaFault(`sending ${records.length} records to ${topic}`, error)
      }
    },
    async close() {
      await forget()
    },
  }
}
