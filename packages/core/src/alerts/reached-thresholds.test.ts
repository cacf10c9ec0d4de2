import { expect, test } from 'vitest'
import { alertingUnits, type ReachedThreshold, reachedThresholds, thresholdUnits } from './reached-thresholds.ts'

const percents = (...values: readonly number[]) => values.map((percent) => ({ percent }))
const percentsOf = (reached: readonly ReachedThreshold[]) => reached.map(({ percent }) => percent)

test.each([
  [15, 20, []],
  [16, 20, [80]],
  [19, 20, [80]],
  [20, 20, [100, 80]],
  [25, 20, [100, 80]],
  [0, 1, []],
  [1, 1, [100, 80]],
  [80, 101, []],
  [81, 101, [80]],
])('%i used of %i has reached %j', (used, size, reached) => {
  expect(percentsOf(reachedThresholds({ used, size }, percents(80, 100)))).toEqual(reached)
})

test('a limit without thresholds reaches none', () => {
  expect(reachedThresholds({ used: 10, size: 1 }, [])).toEqual([])
})

test('one decision that crosses several names the highest first', () => {
  expect(percentsOf(reachedThresholds({ used: 95, size: 100 }, percents(10, 50, 90, 100)))).toEqual([90, 50, 10])
})

test('a threshold is the least whole number of units that is its part of the size, exactly, for any size', () => {
  for (const size of [1, 7, 99, 100, 101, 5_000, 2 ** 53 - 1, 2 ** 53 - 50]) {
    for (let percent = 1; percent <= 100; percent += 1) {
      const exact = (BigInt(size) * BigInt(percent) + 99n) / 100n
      expect(BigInt(thresholdUnits(size, percent))).toBe(exact)
    }
  }
})

test('units stand among percents by what they take of the size, and keep their name when it changes', () => {
  const thresholds = [{ percent: 80 }, { units: 50 }, { units: 900 }]
  expect(reachedThresholds({ used: 950, size: 1_000 }, thresholds)).toEqual([
    { name: '900u', percent: 90, units: 900 },
    { name: '80', percent: 80, units: 800 },
    { name: '50u', percent: 5, units: 50 },
  ])
  expect(reachedThresholds({ used: 60, size: 30_000 }, thresholds)).toEqual([{ name: '50u', percent: 0.17, units: 50 }])
})

test('of another size an alert needs its percent, or its units; a threshold that is no longer there is its percent', () => {
  const thresholds = [{ percent: 80 }, { units: 50 }]
  expect(alertingUnits({ percent: 80, size: 100 }, 1_001, thresholds)).toBe(801)
  expect(alertingUnits({ percent: 0.17, size: 30_000 }, 60_000, thresholds)).toBe(50)
  expect(alertingUnits({ percent: 25, size: 100 }, 1_000, thresholds)).toBe(250)
})
