import { setTimeout as delay } from 'node:timers/promises'
import { numberOf } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { DeadLetterPosition, KnownMissing } from '@weir/core/audit/compare-numbers.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { offsetsSince, PartitionAdmin, type PartitionFacts } from '@weir/kafka/partition-admin.ts'

/** A topic with a dead-letter topic. */
export interface DeadLetterTopic {
  readonly topic: string
  /** The topic that stores the records that could not be read. */
  readonly deadLetters: string
}

/** A topic whose records become rows. */
export interface MeteredTopic extends DeadLetterTopic {
  readonly table: string
  /** The consumer group that inserts them. */
  readonly groupId: string
}

/** The topics whose records metering inserts. */
export const meteredTopics: readonly MeteredTopic[] = [
  { topic: topics.decisions, deadLetters: topics.decisionsDeadLetters, table: 'decisions', groupId: 'weir-metering' },
  {
    topic: topics.outcomes,
    deadLetters: topics.outcomesDeadLetters,
    table: 'outcomes',
    groupId: 'weir-metering-outcomes',
  },
]

/** All topics with a dead-letter topic. */
export const deadLetterTopics: readonly DeadLetterTopic[] = [
  ...meteredTopics,
  { topic: topics.alerts, deadLetters: topics.alertsDeadLetters },
]

/** A broker that has just started, or taken a group over, needs a second or two before it knows the group's offsets. */
const attemptsMax = 20
const pauseMs = 500

/** Describes a partition, and waits up to ten seconds for a broker that is not ready yet. */
export async function describePartition(
  admin: PartitionAdmin,
  topic: string,
  partition: number,
): Promise<PartitionFacts> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await admin.describe(topic, partition)
    } catch (error) {
      if (!(error instanceof WeirError) || error.code !== 'KAFKA_UNAVAILABLE' || attempts >= attemptsMax) throw error
      await delay(pauseMs)
    }
  }
}

/** A record that could not be read, as its dead-letter topic stores it. */
export interface DeadLetter extends DeadLetterPosition {
  /** The record itself; null for one that had no value. */
  readonly value: Buffer | null
  readonly reason: string
}

/** Read at a time: a dead letter is at most a megabyte, most are half a kilobyte. */
const lettersPerRead = 200n

/** Reads a dead letter's key, `topic:partition:offset`; undefined for a key that another program wrote. */
function placeOf(key: string): DeadLetterPosition | undefined {
  const [, topic, partition, offset] = /^(.+):(\d+):(\d+)$/.exec(key) ?? []
  if (topic === undefined) return undefined
  return { topic, partition: Number(partition), offset: Number(offset) }
}

/** Yields every dead letter of the topic once, in the order of the topic. */
export async function* readDeadLetters(kafka: KafkaOptions, deadLetterTopic: string): AsyncIterable<DeadLetter> {
  const admin = new PartitionAdmin(kafka, 'weir-audit')
  const seen = new Set<string>()
  try {
    for (const { partition } of await offsetsSince(kafka, deadLetterTopic, 0)) {
      const { first, end } = await describePartition(admin, deadLetterTopic, partition)
      for (let from = first; from < end; from += lettersPerRead) {
        const to = from + lettersPerRead < end ? from + lettersPerRead - 1n : end - 1n
        for (const { key, value, headers } of await admin.readRange(deadLetterTopic, partition, from, to)) {
          const name = key?.toString('utf8') ?? ''
          const place = placeOf(name)
          // A crash before the commit sends a letter again.
          if (place === undefined || seen.has(name)) continue
          seen.add(name)
          yield { ...place, value, reason: headers['x-error-reason'] ?? '' }
        }
      }
    }
  } finally {
    await admin.close()
  }
}

/** The numbers of a topic that no row has because their records became dead letters. */
export interface DeadLetterNumbers {
  readonly places: readonly DeadLetterPosition[]
  /** The numbers of those dead letters whose number can be read. */
  readonly known: readonly KnownMissing[]
}

/** Reads which sequence numbers the dead letters of a topic account for. */
export async function readDeadLetterNumbers(kafka: KafkaOptions, deadLetterTopic: string): Promise<DeadLetterNumbers> {
  const places: DeadLetterPosition[] = []
  const known: KnownMissing[] = []
  for await (const { topic, partition, offset, value } of readDeadLetters(kafka, deadLetterTopic)) {
    places.push({ topic, partition, offset })
    const number = value === null ? undefined : numberOf(value)
    if (number === undefined) continue
    known.push({ topic, partition, journal: number.journal, range: { from: number.seq, to: number.seq } })
  }
  return { places, known }
}
