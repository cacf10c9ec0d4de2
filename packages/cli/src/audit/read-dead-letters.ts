import { numberOf } from '@weir/contracts/journal.v1.ts'
import type { DeadLetterPlace, KnownMissing } from '@weir/core/audit/compare-numbers.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { openPartitionDesk } from '@weir/kafka/partition-facts.ts'
import { offsetsSince } from '@weir/kafka/topic-offsets.ts'
import { askFacts } from './ask-facts.ts'

/** A record that could not be read, as it is kept. */
export interface DeadLetter extends DeadLetterPlace {
  /** The record itself; null for one that had no value. */
  readonly value: Buffer | null
  readonly reason: string
}

/** Read at a time: a dead letter is at most a megabyte, most are half a kilobyte. */
const lettersPerRead = 200n

/** By the key that metering gives it, `topic:partition:offset`; undefined for a key of somebody else's. */
function placeOf(key: string): DeadLetterPlace | undefined {
  const [, topic, partition, offset] = /^(.+):(\d+):(\d+)$/.exec(key) ?? []
  if (topic === undefined) return undefined
  return { topic, partition: Number(partition), offset: Number(offset) }
}

/** All that are kept, once each, in the order of their places. `visit` is called with one after the other. */
export async function readDeadLetters(
  kafka: KafkaOptions,
  deadLetterTopic: string,
  visit: (letter: DeadLetter) => void,
): Promise<void> {
  const desk = openPartitionDesk(kafka, 'weir-audit')
  const seen = new Set<string>()
  try {
    for (const { partition } of await offsetsSince(kafka, deadLetterTopic, 0)) {
      const { first, end } = await askFacts(desk, deadLetterTopic, partition)
      for (let from = first; from < end; from += lettersPerRead) {
        const to = from + lettersPerRead < end ? from + lettersPerRead - 1n : end - 1n
        for (const { key, value, headers } of await desk.readRange(deadLetterTopic, partition, from, to)) {
          const name = key?.toString('utf8') ?? ''
          const place = placeOf(name)
          // A crash before the commit sends a letter again.
          if (place === undefined || seen.has(name)) continue
          seen.add(name)
          visit({ ...place, value, reason: headers['x-error-reason'] ?? '' })
        }
      }
    }
  } finally {
    await desk.close()
  }
}

/** What the numbers of a topic lack because of its dead letters. */
export interface DeadLetterNumbers {
  readonly places: readonly DeadLetterPlace[]
  /** Of those whose number can be read. */
  readonly known: readonly KnownMissing[]
}

export async function readDeadLetterNumbers(kafka: KafkaOptions, deadLetterTopic: string): Promise<DeadLetterNumbers> {
  const places: DeadLetterPlace[] = []
  const known: KnownMissing[] = []
  await readDeadLetters(kafka, deadLetterTopic, ({ topic, partition, offset, value }) => {
    places.push({ topic, partition, offset })
    const number = value === null ? undefined : numberOf(value)
    if (number === undefined) return
    known.push({ topic, partition, journal: number.journal, range: { from: number.seq, to: number.seq } })
  })
  return { places, known }
}
