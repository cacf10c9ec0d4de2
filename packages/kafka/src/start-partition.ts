import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import type { Consumer } from 'kafkajs'
import type { KafkaLog } from './connect.ts'
import { isTransient, kafkaFault, reasonOf } from './kafka-errors.ts'
import type { Committed, PartitionAdmin, PartitionFacts } from './partition-admin.ts'
import type { LogRecord } from './partition-log.ts'
import type { RecordBatch } from './record-batch.ts'
import { retryDelayMs } from './retry-delay.ts'
import type { OffsetCommit } from './wire/kafkajs-fixes.ts'

/**
 * A partition that was just assigned, and of which nothing is read yet. Heartbeats go on by themselves meanwhile.
 * Commits are as a batch's; Kafka takes offsets of other partitions too.
 */
export interface AssignedPartition extends Pick<RecordBatch, 'topic' | 'partition' | 'commitAll' | 'isFenced'> {
  /** As of now, of this partition or another one of the topic. */
  facts(partition: number): Promise<PartitionFacts>
  /** What the group has committed for partitions of the topic, in this order; those without a commit are left out. */
  committed(partitions: readonly number[]): Promise<ReadonlyMap<number, Committed>>
  /** All records of a range of a partition of the topic that Kafka still has. */
  readRange(partition: number, from: bigint, to: bigint): Promise<LogRecord[]>
}

/** Where a partition is read from; or that it is not, and why. */
export type Start =
  | { readonly kind: 'from'; readonly offset: bigint }
  | { readonly kind: 'stop'; readonly reason: string }

interface StartOptions {
  readonly consumer: Pick<Consumer, 'seek' | 'resume'>
  readonly admin: Pick<PartitionAdmin, 'describe' | 'committed' | 'readRange'>
  /** Commits as the member that the partition was assigned to. */
  readonly commit: (topic: string, commits: readonly OffsetCommit[]) => Promise<void>
  readonly onAssigned: (partition: AssignedPartition) => Promise<Start>
  readonly isFenced: () => boolean
  readonly log: KafkaLog
}

/** One partition of a topic. */
export type TopicPartition = Readonly<Pick<AssignedPartition, 'topic' | 'partition'>>

async function askOnce(assigned: TopicPartition, options: StartOptions): Promise<Start> {
  const { admin, commit, onAssigned, isFenced } = options
  const { topic, partition } = assigned
  const what = `partition ${partition} of ${topic}`
  return onAssigned({
    ...assigned,
    facts: (other) => admin.describe(topic, other),
    committed: (partitions) => admin.committed(topic, partitions),
    isFenced,
    readRange: (other, from, to) => admin.readRange(topic, other, from, to),
    async commitAll(commits) {
      if (isFenced()) throw new WeirError('PARTITION_LOST', `${what} was reassigned; its new owner will reread it`)
      try {
        await commit(topic, commits)
      } catch (error) {
        throw kafkaFault(`committing ${commits[0]?.offset} for ${what}`, error)
      }
    },
  })
}

/**
 * Asks where a partition begins until there is an answer, or the assignment is over, and lets it be read from there.
 * Gives the reason why it is not read, if so. Rejects with a fault that no repetition fixes.
 */
export async function startPartition(assigned: TopicPartition, options: StartOptions): Promise<string | undefined> {
  const { consumer, isFenced, log } = options
  await delay(0) // the join that assigned the partition is not over yet
  for (let failures = 1; !isFenced(); failures += 1) {
    try {
      const start = await askOnce(assigned, options)
      if (isFenced()) return undefined
      if (start.kind === 'stop') return start.reason
      consumer.seek({ ...assigned, offset: String(start.offset) })
      consumer.resume([{ topic: assigned.topic, partitions: [assigned.partition] }])
      return undefined
    } catch (error) {
      if (isFenced()) return undefined
      if (error instanceof WeirError && error.code === 'PARTITION_STOPPED') return error.message
      if (!mayPass(error)) throw error
      log.warn({ ...assigned, reason: reasonOf(error), failures }, 'partition not started, retrying')
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
