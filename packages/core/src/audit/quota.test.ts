import { expect, test } from 'vitest'
import { type QuotaCount, type QuotaReading, quotaDiscrepancies } from './quota.ts'

const endMs = Date.parse('2026-11-21T00:00:00Z')
const count = (before: number, change: Partial<QuotaCount> = {}): QuotaCount => ({
  outcome: 'left',
  before,
  endMs,
  now: before,
  ...change,
})
const look = (units: number, first: number, last = first, change: Partial<QuotaReading> = {}): QuotaReading => ({
  floor: { limit: 'day', subject: 'acme', keyId: '', route: '', method: '', endMs, units, key: 'weir:1:{acme}:day' },
  first: count(first),
  last: count(last),
  unknown: 0,
  isLeased: false,
  ...change,
})

test('a count that is what the records say has no finding, also while requests go on', () => {
  expect(quotaDiscrepancies([look(10, 10), look(10, 8, 12), look(0, 0)])).toEqual([])
})

test('a count below the records is named with its key', () => {
  expect(quotaDiscrepancies([look(10, 0, 9)])).toMatchObject([
    { what: 'used of day', where: 'weir:1:{acme}:day', expected: '10', found: '9', note: 'Redis counts too little' },
  ])
})

test('a count above the records is named, unless doubtful charges or units taken beforehand explain it', () => {
  expect(quotaDiscrepancies([look(10, 13)])).toMatchObject([{ expected: '10', found: '13' }])
  expect(quotaDiscrepancies([look(10, 13, 13, { unknown: 2 })])).toHaveLength(1)
  expect(quotaDiscrepancies([look(10, 13, 13, { unknown: 3 }), look(10, 13, 13, { isLeased: true })])).toEqual([])
  // Units that were given back meanwhile.
  expect(quotaDiscrepancies([look(10, 13, 10)])).toEqual([])
})

test('another period instead of the records’ is named; one that is over is not', () => {
  const other = count(3, { outcome: 'other', endMs: endMs + 3_600_000 })
  expect(quotaDiscrepancies([look(10, 3, 3, { last: other })])).toMatchObject([
    { what: 'period of day', found: 'another, that ends 2026-11-21T01:00:00.000Z' },
  ])
  expect(quotaDiscrepancies([look(10, 3, 3, { last: count(3, { outcome: 'over' }) })])).toEqual([])
})
