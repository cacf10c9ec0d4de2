import { batchBytes } from '@weir/kafka/wire/record-batch-bytes.ts'
import { expect, test } from 'vitest'
import { PartitionQueue } from './partition-queue.ts'

/** What Kafka takes of one batch by default (`max.message.bytes`). */
const kafkaBytesMax = 1_048_588

test.each([0, 10, 300, 5_000])('no batch of records of about %i bytes is larger than Kafka takes', (bytes) => {
  const queue = new PartitionQueue(0, 0)
  for (let seq = 0; seq < 10_000; seq += 1) {
    const value = Buffer.alloc(bytes + (seq % 50), 'x')
    queue.pushRead({ topic: 0, partition: 0, seq, key: Buffer.from(`k${seq}`), value, appendedMs: 0, segment: 1 })
  }
  while (!queue.isEmpty) {
    const batch = queue.nextBatch()
    expect(batch.length).toBeGreaterThan(0)
    expect(batchBytes(batch)).toBeLessThan(kafkaBytesMax)
    queue.acknowledge(0)
  }
})
