import { setTimeout as delay } from 'node:timers/promises'
import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { isTransient, kafkaFault } from '@weir/kafka/kafka-errors.ts'
import { createProducer, type Deniable } from '@weir/kafka/reconnecting-producer.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'

export interface PolicyWriterOptions extends KafkaOptions {
  /** Given by tests only. */
  readonly topic?: string
}

export interface PolicyWriter {
  /**
   * Appends one change as one batch, which Kafka stores whole or not at all; the last message is its audit record.
   * Resolves with that record's offset when every in-sync replica has it. Rejects with `KAFKA_UNAVAILABLE` (it may be
   * stored all the same; the same messages again do no harm) or `KAFKA_REFUSED`.
   */
  publish(messages: readonly PolicyMessage[]): Promise<bigint>
  close(): Promise<void>
}

/** Somebody waits: enough for a connection that broke since the last change to be made again. */
const attemptsMax = 3
/** The topic has no other. */
const partition = 0

/** Connects at the first change. */
export function createPolicyWriter(options: PolicyWriterOptions): PolicyWriter & Deniable {
  const { topic = topics.policy } = options
  const producer = createProducer(options)
  const send = async (messages: readonly PolicyMessage[]) => {
    const records = messages.map(({ key, value }) => ({ key, value, partition }))
    for (let failures = 1; ; failures += 1) {
      try {
        return await producer.send(topic, records)
      } catch (error) {
        if (failures >= attemptsMax || !isTransient(error)) throw error
        await delay(retryDelayMs(failures))
      }
    }
  }
  return {
    get denied() {
      return producer.denied
    },
    async publish(messages) {
      const what = `storing a change of the policy in ${topic}`
      const answer = await send(messages).catch((error: unknown) => {
        throw kafkaFault(what, error)
      })
      const stored = answer.find((one) => one.partition === partition && one.errorCode === 0)
      if (stored?.baseOffset === undefined) {
        throw new WeirError('KAFKA_UNAVAILABLE', `${what}: its partition has no leader at the moment; try again`)
      }
      return BigInt(stored.baseOffset) + BigInt(messages.length - 1)
    },
    close: () => producer.close(),
  }
}
