import { expect, test } from 'vitest'
import { encodeGapOpen, encodeMark, kindOf, numberOf, parseGap, parseMark } from './journal.v1.ts'

const journal = '0199a3a0-7c1e-7000-8000-00000000000a'
const tsMs = Date.UTC(2026, 0, 31, 14, 0, 0, 5)

test('a watermark is read back as it was written, and is recognized by its first bytes', () => {
  const value = Buffer.from(encodeMark(tsMs, journal, 7, true))
  expect(kindOf(value)).toBe('mark')
  expect(parseMark(value)).toEqual({ v: 1, mark: '2026-01-31 14:00:00.005', journal, seq: 7, end: true })
  expect(numberOf(value)).toBeUndefined()
})

test('a gap record is read back as it was written, under its number', () => {
  const gap = { cause: 'journal_full', count: 12, fromMs: tsMs, toMs: tsMs + 1, detail: 'so "full"' } as const
  const value = Buffer.from(`${encodeGapOpen(gap)},"journal":"${journal}","seq":9}`)
  expect(kindOf(value)).toBe('gap')
  expect(parseGap(value)).toMatchObject({ gap: 'journal_full', count: 12, detail: 'so "full"', journal, seq: 9 })
  expect(numberOf(value)).toEqual({ journal, seq: 9 })
})

test.each([
  ['what looks like a number inside a text', `{"a":",\\"journal\\":\\"${journal}\\",\\"seq\\":3}"}`],
  ['a number that is none', `{"a":1,"journal":"${journal}","seq":1.5}`],
  ['a journal that is no UUID', '{"a":1,"journal":"x","seq":1}'],
  ['nothing', ''],
])('no number is read from %s', (_, text) => {
  expect(numberOf(Buffer.from(text))).toBeUndefined()
})

test('any other value is a record for its own reader', () => {
  for (const text of ['', '{}', '{"v":1,"mark"', '{"v":1,"id":"x"}', '[1]'])
    expect(kindOf(Buffer.from(text))).toBe('record')
  expect(parseMark(Buffer.from('{"v":1,"mark":"yesterday"}'))).toBeUndefined()
  expect(parseGap(Buffer.from('{"v":1,"gap":"other"}'))).toBeUndefined()
})
