import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { decodeRecordBatch } from './fetched-record.ts'

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
    ...{ compression, attributes, firstOffset: 5_000_000_000, lastOffsetDelta: count - 1 },
    ...{ firstTimestamp: 1_700_000_000_000, maxTimestamp: 1_700_000_009_999 },
    ...{ producerId: -1, producerEpoch: 0, firstSequence: 0, records: records.map(encodeRecord) },
  })
  return buffer
}

const texts = (headers: unknown) =>
  Object.fromEntries(Object.entries(Object(headers)).map(([name, value]) => [name, String(value)]))

const partsOf = ({ offset, timestamp, key, value, headers, isControlRecord }: Record<string, unknown>) => ({
  ...{ offset, timestamp, isControlRecord, headers: texts(headers) },
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
        ...{ offset: one.offset, timestamp: one.timestamp },
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
