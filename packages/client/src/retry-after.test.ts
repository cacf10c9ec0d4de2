import { expect, it } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const nowMs = Date.parse('2026-11-22T06:00:00Z')

it.each([
  ['2', 2_000],
  ['0', 0],
  [' 10 ', 10_000],
  ['1.5', 1_500],
  ['Sun, 22 Nov 2026 06:00:30 GMT', 30_000],
  ['Sunday, 22-Nov-26 06:00:30 GMT', 30_000],
  ['Sun Nov 22 06:00:30 2026 GMT', 30_000],
  ['Sun Nov 22 06:00:30 2026', 30_000],
  ['Sun, 22 Nov 2026 05:00:00 GMT', 0],
  [null, undefined],
  ['', undefined],
  ['-5', undefined],
  ['1e3', undefined],
  ['soon', undefined],
  ['NaN', undefined],
  ['Someday, some time', undefined],
])('Retry-After %j asks for %j ms', (header, expected) => {
  expect(retryAfterMs(header, nowMs)).toBe(expected)
})
