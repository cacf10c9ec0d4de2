import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { batchBytes, writeBatch } from './record-batch-bytes.ts'

const requireCjs = createRequire(import.meta.url)
const Decoder = requireCjs('kafkajs/src/protocol/decoder')
const decodeBatch = requireCjs('kafkajs/src/protocol/recordBatch/v0/decoder')
const { crc32c } = requireCjs('@node-rs/crc32')

const records = Array.from({ length: 300 }, (_, n) => ({
  key: Buffer.from(n % 7 === 0 ? '' : `subject-ü-${n}`),
  value: Buffer.from(`{"n":${n},"text":"${'x'.repeat(n * 40)}"}`),
}))

test("a batch is read by kafkajs's own decoder as the records that went in, in order and of one time", async () => {
  const bytes = Buffer.alloc(batchBytes(records) + 20, 0xee)
  const end = writeBatch(bytes, 10, records, 1_790_000_000_123)
  expect(end).toBe(10 + batchBytes(records))
  expect(bytes[end]).toBe(0xee)
  const whole = bytes.subarray(10, end)
  expect(whole.readInt32BE(8)).toBe(whole.length - 12)
  expect(whole.readUInt32BE(17)).toBe(crc32c(whole.subarray(21)))
  // kafkajs's fetch has read offset, length, epoch and the magic number before it hands a batch on.
  const decoded = await decodeBatch(new Decoder(whole))
  expect(decoded.records.length).toBe(records.length)
  for (const [n, record] of decoded.records.entries()) {
    expect(record.offset).toBe(String(n))
    expect(record.timestamp).toBe('1790000000123')
    expect(record.key).toEqual(records[n]?.key)
    expect(record.value).toEqual(records[n]?.value)
    expect(record.headers).toEqual({})
  }
})

test.each([0, 1, 63, 64, 8_191, 8_192, 900_000])('a record of %i bytes is read as it went in', async (length) => {
  const record = { key: Buffer.from('k'), value: Buffer.alloc(length, 'x') }
  const bytes = Buffer.alloc(batchBytes([record]))
  expect(writeBatch(bytes, 0, [record], 0)).toBe(bytes.length)
  const decoded = await decodeBatch(new Decoder(bytes))
  expect(decoded.records[0].value).toEqual(record.value)
})
