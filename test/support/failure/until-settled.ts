import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { inspectJournals } from '@weir/journal/inspect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { type KafkaOffsets, openKafkaOffsets } from './kafka-offsets.ts'
import type { Stack } from './stack.ts'

/** All that journals held is in Kafka, and all of that in ClickHouse, within this time each. */
const deadlineMs = 120_000
/**
 * Journals that wait for nothing for this time have nothing more to come: a sum of refusals is closed, and numbered,
 * after a second.
 */
const idleMs = 2_500

const meteringGroup = 'weir-metering'

/**
 * Every journal in the folder is that of a process which lives, and Kafka has all of it; what dead ones left was sent
 * by others.
 */
async function untilSent(base: string): Promise<boolean> {
  let idleSinceMs: number | undefined
  const isIdle = async () => {
    const journals = await inspectJournals(base)
    const isSent = journals.every(({ state, waiting, problem }) => state === 'running' && waiting === 0 && !problem)
    idleSinceMs = isSent ? (idleSinceMs ?? performance.now()) : undefined
    return idleSinceMs !== undefined && performance.now() - idleSinceMs >= idleMs
  }
  return (await waitUntil(isIdle, { deadlineMs, everyMs: 250 })) === true
}

/** Metering has gone past all that stood in Kafka when this was called. */
async function untilRead(kafka: KafkaOffsets): Promise<boolean> {
  const ends = await kafka.ends(topics.decisions)
  const isRead = async () => {
    const committed = await kafka.committed(meteringGroup)
    return [...ends].every(([partition, end]) => (committed.get(partition) ?? 0n) >= end)
  }
  return (await waitUntil(isRead, { deadlineMs, everyMs: 250 })) === true
}

/**
 * Waits, after the load has stopped, until all that will ever come to ClickHouse is there: what was answered, what was
 * cut off, and what came too often. Only then can it be counted: else decisions that were cut off stand in for answered
 * ones still on their way.
 */
export async function untilSettled({ kafka, dir }: Pick<Stack, 'kafka' | 'dir'>): Promise<void> {
  if (!(await untilSent(join(dir, 'journal')))) throw new Error('journals hold records that Kafka does not have')
  const offsets = await openKafkaOffsets(kafka)
  try {
    if (!(await untilRead(offsets))) throw new Error('metering has not read all that is in Kafka')
  } finally {
    await offsets.close()
  }
}
