import { setTimeout as delay } from 'node:timers/promises'
import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { isTransient } from '@weir/kafka/kafka-errors.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'

/** A caller waits: enough to reconnect if the connection broke since the last change. */
const attemptsMax = 3
/** The topic has no other. */
const partition = 0

/** Writes changes of the policy; tests name another topic. Connects at the first change. */
export function createPolicyWriter(options: KafkaOptions & { readonly topic?: string }) {
  const { topic = topics.policy } = options
  const sender = createRecordSender(options)
  const send = async (messages: readonly PolicyMessage[]) => {
    const records = messages.map(({ key, value }) => ({ key, value, partition }))
    for (let failures = 1; ; failures += 1) {
      try {
        return await sender.send(topic, records)
      } catch (error) {
        if (failures >= attemptsMax || !isTransient(error)) throw error
        await delay(retryDelayMs(failures))
      }
    }
  }
  return {
    get denied() {
      return sender.denied
    },
    /**
     * Appends one change as one batch, which Kafka stores whole or not at all; the last message is its audit record.
     * Resolves with that record's offset when every in-sync replica has it. Rejects with `KAFKA_UNAVAILABLE` (it may be
     * stored all the same; the same messages again do no harm), `KAFKA_DENIED` or `KAFKA_REFUSED`.
     */
    async publish(messages: readonly PolicyMessage[]): Promise<bigint> {
      const stored = (await send(messages)).find((one) => one.partition === partition && one.errorCode === 0)
      if (stored?.baseOffset === undefined) {
        throw new WeirError('KAFKA_UNAVAILABLE', `${topic} has no leader at the moment; try again`)
      }
      return BigInt(stored.baseOffset) + BigInt(messages.length - 1)
    },
    close: () => sender.close(),
  }
}

/** The console's, or a test's. */
export type PolicyWriter = Pick<ReturnType<typeof createPolicyWriter>, 'publish' | 'close'>
