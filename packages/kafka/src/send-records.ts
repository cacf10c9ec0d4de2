import type { KafkaOptions } from './connect.ts'
import { kafkaFault } from './kafka-errors.ts'
import { createProducer, type Deniable } from './reconnecting-producer.ts'

export interface RecordToSend {
  readonly key: string
  /** Null deletes the key on a compacted topic. */
  readonly value: string | Buffer | null
  readonly headers?: Readonly<Record<string, string>>
}

export interface RecordSender {
  /**
   * Resolves when every in-sync replica has all records. Rejects with `KAFKA_UNAVAILABLE` (some or all may have been
   * stored: sending again repeats them) or `KAFKA_REFUSED`; never retries by itself.
   */
  send(topic: string, records: readonly RecordToSend[]): Promise<void>
  close(): Promise<void>
}

/** For few records that someone waits for, such as alerts. Connects at the first record. */
export function createRecordSender(options: KafkaOptions): RecordSender & Deniable {
  const producer = createProducer(options)
  return {
    get denied() {
      return producer.denied
    },
    async send(topic, records) {
      if (records.length === 0) return
      const messages = records.map(({ key, value, headers }) => ({ key, value, headers: { ...headers } }))
      try {
        await producer.send(topic, messages)
      } catch (error) {
        throw kafkaFault(`sending ${records.length} records to ${topic}`, error)
      }
    },
    close: () => producer.close(),
  }
}
