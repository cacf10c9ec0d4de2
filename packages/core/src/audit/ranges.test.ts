import { expect, test } from 'vitest'
import { countOf, joined, pieces, rangesText, uncovered } from './ranges.ts'

test('what others cover is taken out of a range, wherever it lies', () => {
  const range = { from: 10, to: 20 }
  expect(uncovered(range, [])).toEqual([range])
  expect(uncovered(range, [{ from: 0, to: 100 }])).toEqual([])
  expect(
    uncovered(range, [
      { from: 0, to: 9 },
      { from: 21, to: 30 },
    ]),
  ).toEqual([range])
  expect(
    uncovered(range, [
      { from: 18, to: 25 },
      { from: 12, to: 13 },
      { from: 5, to: 10 },
      { from: 12, to: 12 },
    ]),
  ).toEqual([
    { from: 11, to: 11 },
    { from: 14, to: 17 },
  ])
})

test('near ranges become one, far ones stay apart', () => {
  const ranges = [
    { from: 1, to: 1 },
    { from: 4, to: 5 },
    { from: 50, to: 60 },
  ]
  expect(joined(ranges, 3)).toEqual([
    { from: 1, to: 5 },
    { from: 50, to: 60 },
  ])
  expect(joined(ranges, 2)).toEqual(ranges)
})

test('a range falls into pieces that are together the range', () => {
  const parts = pieces({ from: 3, to: 12 }, 4)
  expect(parts).toEqual([
    { from: 3, to: 6 },
    { from: 7, to: 10 },
    { from: 11, to: 12 },
  ])
  expect(countOf(parts)).toBe(10)
})

test('of many ranges the first few are written', () => {
  expect(
    rangesText([
      { from: 1, to: 1 },
      { from: 3, to: 9 },
    ]),
  ).toBe('1, 3-9')
  expect(rangesText(pieces({ from: 0, to: 99 }, 1))).toBe('0, 1, 2, 3, 4, …')
})
