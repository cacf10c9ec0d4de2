import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { type EncodedRecord, encodeRecord, isPlainRecord, type RecordFields } from './encode-record.ts'

const original: (record: RecordFields) => EncodedRecord = createRequire(import.meta.url)(
  'kafkajs/src/protocol/recordBatch/record/v0',
)

describe('a record', () => {
  const texts = ['', 'a', 'x'.repeat(63), 'x'.repeat(64), 'x'.repeat(8_191), 'x'.repeat(8_192), 'x'.repeat(900_000)]
  const values = [...texts, 'Zoë ☃ 𝒳', '\ud800', null, Buffer.from([0, 255]), Buffer.alloc(0)]

  it.each(values.map((value) => ({ value })))('has the very bytes that kafkajs gives it: $value', ({ value }) => {
    for (const key of [undefined, null, 'caller-1', 'ключ', Buffer.from('k')]) {
      const record = { offsetDelta: 3, timestampDelta: 0, value, ...(key === undefined ? {} : { key }) }
      expect(encodeRecord(record).buffer.equals(original(record).buffer)).toBe(true)
    }
  })

  it('has them whatever its number and its time', () => {
    for (const number of [0, 1, 63, 64, 127, 128, 8_191, 8_192, 1_048_575, 1_048_576, 2 ** 28, 2 ** 30 - 1]) {
      for (const [offsetDelta, timestampDelta] of [
        [number, 0],
        [0, number],
      ] as const) {
        const record = { offsetDelta, timestampDelta, key: 'k', value: 'v' }
        expect(isPlainRecord(record), `${number}`).toBe(true)
        expect(encodeRecord(record).buffer.equals(original(record).buffer), `${number}`).toBe(true)
      }
    }
  })

  it.each([{ timestampDelta: -1 }, { timestampDelta: 2 ** 30 }, { timestampDelta: 0.5 }, { headers: { a: 'b' } }])(
    'with %j is left to kafkajs',
    (fields) => {
      expect(isPlainRecord({ value: 'v', ...fields })).toBe(false)
      expect(isPlainRecord({ value: 'v', headers: {} })).toBe(true)
    },
  )
})
