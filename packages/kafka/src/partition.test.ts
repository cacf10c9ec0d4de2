import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partitionOf } from './partition.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'

const theirs = kafkajs.Partitioners.DefaultPartitioner()

function theirPartition(key: Buffer | string, count: number): number {
  const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
    partitionId,
    partitionErrorCode: 0,
    leader: 1,
    replicas: [1],
    isr: [1],
  }))
  return theirs({ topic: 't', partitionMetadata, message: { key, value: '' } })
}

test('every text goes to the partition that other Kafka clients choose for it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), fc.integer({ min: 1, max: 50 }), (key, count) => {
      expect(partitionOf(key, count)).toBe(theirPartition(key, count))
    }),
  )
})

test('every run of bytes goes to the partition that other Kafka clients choose for it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 50 }), (bytes, count) => {
      const key = Buffer.from(bytes)
      expect(partitionOf(key, count)).toBe(theirPartition(key, count))
    }),
  )
})

test('keys longer than the scratch space hash like any other', () => {
  const key = 'ü'.repeat(2_000)
  expect(partitionOf(key, 6)).toBe(theirPartition(key, 6))
})
