import { expect, test } from 'vitest'
import { type JournalNumbers, numberDiscrepancies } from './compare-numbers.ts'

const place = { topic: 'weir.decisions.v1', partition: 2 }
const journal = 'j'
const range = { from: 5, to: 7, afterOffset: 40, beforeOffset: 44 }
const numbers = (change: Partial<JournalNumbers> = {}): JournalNumbers => ({
  ...place,
  journal,
  rows: 10,
  numbers: 10,
  missing: [],
  ...change,
})

test('a journal whose numbers are all there has no finding', () => {
  expect(numberDiscrepancies([numbers()], [], [])).toEqual([])
})

test('missing numbers are named with their journal and partition', () => {
  expect(numberDiscrepancies([numbers({ missing: [range] })], [], [])).toMatchObject([
    { what: 'missing records', where: 'weir.decisions.v1, partition 2, journal j', found: '3', note: 'numbers 5-7' },
  ])
})

test('numbers that are recorded as missing are not missed, those beside them are', () => {
  const known = (range: { from: number; to: number }, change = {}) => ({ ...place, journal, range, ...change })
  expect(numberDiscrepancies([numbers({ missing: [range] })], [known({ from: 5, to: 7 })], [])).toEqual([])
  expect(numberDiscrepancies([numbers({ missing: [range] })], [known({ from: 0, to: 6 })], [])).toMatchObject([
    { found: '1' },
  ])
  for (const other of [{ partition: 1 }, { topic: 'weir.outcomes.v1' }, { journal: 'k' }]) {
    expect(numberDiscrepancies([numbers({ missing: [range] })], [known({ from: 5, to: 7 }, other)], [])).toHaveLength(1)
  }
})

test('as many dead letters between the rows on either side explain a hole, fewer or others do not', () => {
  const letters = (...offsets: number[]) => offsets.map((offset) => ({ ...place, offset }))
  const found = (...offsets: number[]) => numberDiscrepancies([numbers({ missing: [range] })], [], letters(...offsets))
  expect(found(41, 42, 43)).toEqual([])
  expect(found(41, 42)).toMatchObject([{ found: '3' }])
  expect(found(40, 41, 44)).toMatchObject([{ found: '3' }])
})

test('rows with the same number are named', () => {
  expect(numberDiscrepancies([numbers({ rows: 12 })], [], [])).toMatchObject([
    { what: 'records that stand twice', expected: '0', found: '2' },
  ])
})
