import { createRequire } from 'node:module'
import { zstdCompressSync } from 'node:zlib'
import { crc32c } from '@node-rs/crc32'
import { expect, test } from 'vitest'
import { fetchWithin } from './decompress.ts'
import { decodeRecordBatch, type FetchedRecord } from './fetched-record.ts'

const requireCjs = createRequire(import.meta.url)
const Decoder: new (bytes: Buffer) => { buffer: Buffer; offset: number; forward(bytes: number): void } =
  requireCjs('kafkajs/src/protocol/decoder')
const original: (decoder: object) => Promise<{ records: Record<string, unknown>[] }> = requireCjs(
  'kafkajs/src/protocol/recordBatch/v0/decoder',
)
const encodeRecord: (record: object) => object = requireCjs('kafkajs/src/protocol/recordBatch/record/v0')
const { RecordBatch }: { RecordBatch: (batch: object) => Promise<{ buffer: Buffer }> } = requireCjs(
  'kafkajs/src/protocol/recordBatch/v0',
)

const count = 200
const records = Array.from({ length: count }, (_, at) => ({
  offsetDelta: at,
  timestampDelta: at % 7 === 0 ? -3 : at * 10_000_000_000,
  key: at % 5 === 0 ? null : `key-${at}`,
  value: at % 11 === 0 ? null : at % 13 === 0 ? '' : `value-${'x'.repeat(at)}`,
  headers: at % 3 === 0 ? {} : { one: '1', letters: 'é' },
}))

const encode = async (compression: number, attributes: number) => {
  const { buffer } = await RecordBatch({
    compression,
    attributes,
    firstOffset: 5_000_000_000,
    lastOffsetDelta: count - 1,
    firstTimestamp: 1_700_000_000_000,
    maxTimestamp: 1_700_000_009_999,
    producerId: -1,
    producerEpoch: 0,
    firstSequence: 0,
    records: records.map(encodeRecord),
  })
  return buffer
}

const texts = (headers: unknown) =>
  Object.fromEntries(Object.entries(Object(headers)).map(([name, value]) => [name, String(value)]))

/** Of a record, ours or theirs. */
type Parts = Readonly<
  Partial<Record<'offset' | 'timestamp' | 'key' | 'value' | 'headers' | 'isControlRecord', unknown>>
>

const partsOf = ({ offset, timestamp, key, value, headers, isControlRecord }: Parts) => ({
  offset,
  timestamp,
  isControlRecord,
  headers: texts(headers),
  key: key === null ? null : String(key),
  value: value === null ? null : String(value),
})

test.each([
  ['plain', 0, 0],
  ['gzip', 1, 0],
])('reads a %s batch as kafkajs reads it, in every field', async (_, compression, attributes) => {
  const bytes = await encode(compression, attributes)
  const [theirs, ours] = [new Decoder(bytes), new Decoder(bytes)]
  const expected = (await original(theirs)).records.map(partsOf)
  const { records: found } = await decodeRecordBatch(ours)
  expect(
    found.map((one) =>
      partsOf({
        ...one,
        offset: one.offset,
        timestamp: one.timestamp,
        key: one.key,
        value: one.value,
        headers: one.headers,
      }),
    ),
  ).toEqual(expected)
  expect(ours.offset).toBe(theirs.offset)
})

test('the end of an answer that cuts a batch is told as kafkajs tells it', async () => {
  const bytes = await encode(0, 0)
  await expect(decodeRecordBatch(new Decoder(bytes.subarray(0, -1)))).rejects.toMatchObject({
    name: 'KafkaJSPartialMessageError',
  })
})

/** All batches of a partition's part of an answer. */
async function decodeAll(batches: readonly Buffer[]): Promise<FetchedRecord[]> {
  const decoder = new Decoder(Buffer.concat(batches))
  const found: FetchedRecord[] = []
  try {
    while (decoder.offset < decoder.buffer.length) found.push(...(await decodeRecordBatch(decoder)).records)
  } catch (error) {
    expect(error).toMatchObject({ name: 'KafkaJSPartialMessageError' })
  }
  return found
}

/** A batch as it is in Kafka, with other bytes of records, attributes or count, and a checksum that is right. */
function changed(batch: Buffer, { records: bytes = batch.subarray(61), attributes = 0, announced = count }): Buffer {
  const whole = Buffer.concat([batch.subarray(0, 61), bytes])
  whole.writeInt32BE(whole.length - 12, 8)
  whole.writeInt16BE(attributes, 21)
  whole.writeInt32BE(announced, 57)
  whole.writeUInt32BE(crc32c(whole.subarray(21)), 17)
  return whole
}

const spoilt: readonly [what: string, (batch: Buffer) => Buffer, reason: string][] = [
  ['whose bytes changed', (batch) => Buffer.concat([batch.subarray(0, -9), Buffer.from('123456789')]), 'checksum'],
  ['with fewer records than it announces', (batch) => changed(batch, { announced: count + 1 }), 'announces'],
  ['with more records than it announces', (batch) => changed(batch, { announced: count - 1 }), 'announces'],
  ['cut within its records', (batch) => changed(batch, { records: batch.subarray(61, -3) }), 'announces'],
  [
    'whose compressed records are cut',
    (batch) => changed(batch, { attributes: 4, records: zstdCompressSync(batch.subarray(61)).subarray(0, -20) }),
    'announces',
  ],
  ['of a strange compression', (batch) => changed(batch, { attributes: 7 }), 'number 7, is unknown'],
]

test.each(spoilt)('a batch %s is one record that has its bytes, and what follows is read', async (_, spoil, reason) => {
  const good = await encode(0, 0)
  const bad = spoil(good)
  const [first, ...rest] = await decodeAll([bad, good])
  expect(rest.map(partsOf)).toEqual((await decodeAll([good])).map(partsOf))
  expect(first).toMatchObject({ position: 5_000_000_000 + count - 1, key: null, headers: {}, isControlRecord: false })
  expect(first?.fault).toMatch(/^the batch of offsets 5000000000 to 5000000199 cannot be read: /)
  expect(first?.fault).toContain(reason)
  expect(first?.value?.equals(bad)).toBe(true)
})

test('a batch whose records are compacted away is a control record at its last offset', async () => {
  const empty = changed(await encode(0, 0), { records: Buffer.alloc(0), announced: 0 })
  const [only, ...rest] = await decodeAll([empty])
  expect(rest).toEqual([])
  expect(only).toMatchObject({ position: 5_000_000_000 + count - 1, isControlRecord: true, fault: undefined })
})

test('compressed batches of a fetch that become more than it may bring are left to the next, but for the first', async () => {
  const good = await encode(0, 0)
  const batch = changed(good, { attributes: 4, records: zstdCompressSync(good.subarray(61)) })
  const bytes = good.length - 61
  const within = (bytesMax: number) => fetchWithin(bytesMax, () => decodeAll([batch, batch, batch]))
  expect(await within(1)).toHaveLength(count)
  expect(await within(bytes + 1)).toHaveLength(2 * count)
  expect(await within(3 * bytes)).toHaveLength(3 * count)
  expect(await fetchWithin(1, () => decodeAll([good, good]))).toHaveLength(2 * count)
})
