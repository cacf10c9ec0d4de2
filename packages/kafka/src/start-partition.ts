import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import type { Consumer } from 'kafkajs'
import type { KafkaLog } from './connect.ts'
import { isTransient, kafkaFault, reasonOf } from './kafka-errors.ts'
import type { PartitionAdmin, PartitionFacts } from './partition-admin.ts'
import type { LogRecord } from './partition-log.ts'
import { retryDelayMs } from './retry-delay.ts'

/** A partition that was just assigned, and of which nothing is read yet. Heartbeats go on by themselves meanwhile. */
export interface AssignedPartition {
  readonly topic: string
  readonly partition: number
  /** As of now. */
  facts(): Promise<PartitionFacts>
  /** All records of a range that Kafka still has. */
  readRange(from: bigint, to: bigint): Promise<LogRecord[]>
  /** As a batch's: rejects with `PARTITION_LOST` when the partition is not ours any more. */
  commit(nextOffset: string, metadata?: string): Promise<void>
  /** As a batch's. */
  isFenced(): boolean
}

/** Where a partition is read from; or that it is not, and why. */
export type Start =
  | { readonly kind: 'from'; readonly offset: bigint }
  | { readonly kind: 'stop'; readonly reason: string }

interface StartOptions {
  readonly consumer: Pick<Consumer, 'seek' | 'resume' | 'commitOffsets'>
  readonly admin: Pick<PartitionAdmin, 'describe' | 'readRange'>
  readonly onAssigned: (partition: AssignedPartition) => Promise<Start>
  readonly isFenced: () => boolean
  readonly log: KafkaLog
}

type Place = Readonly<Pick<AssignedPartition, 'topic' | 'partition'>>

async function askOnce(place: Place, options: StartOptions): Promise<Start> {
  const { consumer, admin, onAssigned, isFenced } = options
  const { topic, partition } = place
  const what = `partition ${partition} of ${topic}`
  return onAssigned({
    ...place,
    facts: () => admin.describe(topic, partition),
    isFenced,
    readRange: (from, to) => admin.readRange(topic, partition, from, to),
    async commit(nextOffset, metadata) {
      if (isFenced()) throw new WeirError('PARTITION_LOST', `${what} was reassigned; its owner reads it again`)
      const commit = { topic, partition, offset: nextOffset, ...(metadata === undefined ? {} : { metadata }) }
      try {
        await consumer.commitOffsets([commit])
      } catch (error) {
        throw kafkaFault(`committing ${nextOffset} for ${what}`, error)
      }
    },
  })
}

/**
 * Asks where a partition begins until there is an answer, or the assignment is over, and lets it be read from there.
 * Gives the reason why it is not read, if so. Rejects with a fault that no repetition fixes.
 */
export async function startPartition(place: Place, options: StartOptions): Promise<string | undefined> {
  const { consumer, isFenced, log } = options
  await delay(0) // the join that assigned the partition is not over yet
  for (let failures = 1; !isFenced(); failures += 1) {
    try {
      const start = await askOnce(place, options)
      if (isFenced()) return undefined
      if (start.kind === 'stop') return start.reason
      consumer.seek({ ...place, offset: String(start.offset) })
      consumer.resume([{ topic: place.topic, partitions: [place.partition] }])
      return undefined
    } catch (error) {
      if (isFenced()) return undefined
      if (error instanceof WeirError && error.code === 'PARTITION_STOPPED') return error.message
      if (!mayPass(error)) throw error
      log.warn({ ...place, reason: reasonOf(error), failures }, 'partition not started, trying again')
      await delay(retryDelayMs(failures))
    }
  }
  return undefined
}

/** A lost partition comes to us again only with another assignment, which the loop notices. */
function mayPass(error: unknown): boolean {
  if (error instanceof WeirError) return error.retryable || error.code === 'PARTITION_LOST'
  return isTransient(error) && !(error instanceof TypeError)
}
