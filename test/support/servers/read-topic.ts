import { randomUUID } from 'node:crypto'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { BatchConsumer, type ConsumedRecord, type ConsumeOptions } from '@weir/kafka/consume-batches.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** Settings of a test's consumer: quick to notice, quick to end. */
export function testConsumer(
  options: KafkaOptions,
  topics: readonly string[],
): Omit<ConsumeOptions, 'onBatch' | 'onCrash'> {
  return {
    ...options,
    groupId: `test-${randomUUID()}`,
    topics,
    sessionTimeoutMs: 6_000,
    maxWaitMs: 200,
    minBytes: 1,
    maxBytes: 4 * 1024 * 1024,
    partitionsAtOnce: 6,
  }
}

export interface ReadRecord extends Pick<ConsumedRecord, 'offset' | 'key' | 'value' | 'headers' | 'timestampMs'> {
  readonly partition: number
}

/** Reads a topic from its beginning until `enough` says so; fails with the count when the deadline passes. */
export async function readTopic(
  options: KafkaOptions,
  topic: string,
  enough: (records: readonly ReadRecord[]) => boolean,
  deadlineMs = 30_000,
): Promise<ReadRecord[]> {
  const records: ReadRecord[] = []
  const crashes: unknown[] = []
  const consumer = new BatchConsumer({
    ...testConsumer(options, [topic]),
    async onBatch(batch) {
      for (const { offset, key, value, headers, timestampMs } of batch.records) {
        records.push({ offset, key, value, headers, timestampMs, partition: batch.partition })
      }
    },
    onCrash: (error) => crashes.push(error),
  })
  try {
    const done = await waitUntil(() => crashes.length > 0 || enough(records), { deadlineMs })
    if (crashes.length > 0) throw crashes[0]
    if (done !== true)
      throw new Error(`read ${records.length} records in ${deadlineMs} ms: ${JSON.stringify(consumer.status)}`)
    return records
  } finally {
    await consumer.stop()
  }
}
