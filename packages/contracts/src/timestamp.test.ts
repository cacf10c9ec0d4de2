import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatTs, parseTs } from './timestamp.ts'

test('a time is written to the millisecond in UTC and read back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (ms) => {
      expect(formatTs(ms)).toBe(new Date(ms).toISOString().replace('T', ' ').replace('Z', ''))
      expect(parseTs(formatTs(ms))).toBe(ms)
    }),
  )
})

test('texts of another form are no time', () => {
  for (const text of ['', '2026-01-01', '2026-01-01T00:00:00.000', '2026-13-01 00:00:00.000']) {
    expect(parseTs(text)).toBeUndefined()
  }
})
