import { expect, test } from 'vitest'
import { change, count, length, moment, money, quantity, wait } from './format.ts'

test.each([
  [0, '0 ms'],
  [300, '300 ms'],
  [1_000, '1 s'],
  [19_850, '19.9 s'],
  [40_001, '40.1 s'],
  [59_999, '1 min'],
  [60_001, '1 min 1 s'],
  [7_500_000, '2 h 5 min'],
  [86_400_000, '1 d'],
  [31_622_400_000, '366 d'],
])('a wait of %i ms is never said to be shorter: %s', (ms, text) => {
  expect(wait(ms)).toBe(text)
})

test('numbers, money, changes and moments read alike everywhere', () => {
  expect([count(1_234), count('9007199254740993'), count(null)]).toEqual(['1,234', '9,007,199,254,740,993', '–'])
  expect([money('2392.14'), change(0.124), change(-0.5), change(0), change(null)]).toEqual([
    '2,392.14',
    '+12%',
    '−50%',
    '±0%',
    'new',
  ])
  expect(length(45_360_000)).toBe('12 h 36 min')
  expect(moment('2026-11-27T11:02:03Z', 'UTC')).toBe('27 Nov 2026, 11:02:03 UTC')
  expect(moment('2026-09-30T22:30:00Z', 'Europe/Berlin')).toBe('1 Oct 2026, 00:30:00 +02:00')
  expect(moment('2026-09-30T11:00:00Z', 'UTC')).toBe('30 Sep 2026, 11:00:00 UTC')
})

test('A quantity of money is an amount with its currency, and any other a count', () => {
  const nanos = [0, 1, '12345678901234567890', 1_500_000_000, 2.4]
  expect(nanos.map((one) => quantity(one, 'USD'))).toEqual([
    '0.00 USD',
    '0.000000001 USD',
    '12,345,678,901.23456789 USD',
    '1.50 USD',
    '0.000000002 USD',
  ])
  expect([quantity(1_234), quantity(1_234, null), quantity(null, 'USD')]).toEqual(['1,234', '1,234', '–'])
})
