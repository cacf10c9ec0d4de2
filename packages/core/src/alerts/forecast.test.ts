import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runsOutMs } from './forecast.ts'

const hourMs = 3_600_000
const day = { startMs: 0, endMs: 24 * hourMs }

it('is where a straight line through the start and now meets the size, if that is before the end', () => {
  expect(runsOutMs({ used: 50, size: 100 }, day, 6 * hourMs)).toBe(12 * hourMs)
  expect(runsOutMs({ used: 50, size: 100 }, day, 12 * hourMs)).toBeUndefined()
  expect(runsOutMs({ used: 51, size: 100 }, day, 12 * hourMs)).toBe(Math.floor((12 * hourMs * 100) / 51))
})

it('says nothing in the first tenth, of a quota that is used up, and of one that nobody uses', () => {
  expect(runsOutMs({ used: 99, size: 100 }, day, 2.4 * hourMs - 1)).toBeUndefined()
  expect(runsOutMs({ used: 99, size: 100 }, day, 2.4 * hourMs)).toBeDefined()
  expect(runsOutMs({ used: 100, size: 100 }, day, 6 * hourMs)).toBeUndefined()
  expect(runsOutMs({ used: 0, size: 0 }, day, 6 * hourMs)).toBeUndefined()
})

it('lies between now and the end, whatever was used', () => {
  const units = fc.integer({ min: 0, max: 2 ** 53 - 1 })
  fc.assert(
    fc.property(units, units, fc.integer({ min: 0, max: 24 * hourMs }), (used, size, nowMs) => {
      const outMs = runsOutMs({ used, size }, day, nowMs)
      if (outMs === undefined) return
      expect(outMs).toBeGreaterThanOrEqual(nowMs)
      expect(outMs).toBeLessThan(day.endMs)
    }),
  )
})
