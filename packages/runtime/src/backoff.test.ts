import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const bounds = { firstMs: 100, maxMs: 5_000 }
const longest = () => 1

test('A pause doubles with every failure in a row, from the first to the longest', () => {
  const pauses = [1, 2, 3, 6, 7, 1_000_000].map((failures) => backoffMs(failures, bounds, longest))
  expect(pauses).toEqual([100, 200, 400, 3_200, 5_000, 5_000])
})

test('A pause before any failure is as long as the first', () => {
  expect(backoffMs(0, bounds, longest)).toBe(100)
})

test('The upper half of a pause is random, and a pause is a whole number of milliseconds', () => {
  expect([0, 0.5, 0.999].map((random) => backoffMs(2, bounds, () => random))).toEqual([100, 150, 200])
  for (let at = 0; at < 100; at += 1) {
    const pauseMs = backoffMs(3, bounds)
    expect(pauseMs).toBeGreaterThanOrEqual(200)
    expect(pauseMs).toBeLessThanOrEqual(400)
    expect(Number.isInteger(pauseMs)).toBe(true)
  }
})
