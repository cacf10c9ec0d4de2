import { expect, test } from 'vitest'
import { retryDelayMs } from './retry-delay.ts'

test('pauses double from 100 ms up to 5 s and never beyond, however many attempts failed', () => {
  const longest = [1, 2, 3, 6, 7, 1_000].map((failures) => retryDelayMs(failures, () => 1))
  expect(longest).toEqual([100, 200, 400, 3_200, 5_000, 5_000])
  expect(retryDelayMs(1, () => 0)).toBe(50)
})
