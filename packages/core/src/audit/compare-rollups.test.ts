import { describe, expect, it } from 'vitest'
import { compareRollup, type HourSums, rollupDiscrepancies } from './compare-rollups.ts'

const hourMs = Date.parse('2026-11-20T10:00:00Z')
const hour = (count: bigint, checksum = String(count), more: Partial<HourSums> = {}): HourSums => ({
  hourMs,
  sums: { count, cost: 2n * count },
  checksum,
  ...more,
})
const compare = (before: HourSums[], rollup: HourSums[], after = before) =>
  compareRollup({ table: 'usage_1m', before, rollup, after })

describe('a rollup', () => {
  it('that is what raw adds up to has no difference', () => {
    expect(compare([hour(5n)], [hour(5n)])).toEqual([])
    expect(compare([], [])).toEqual([])
  })

  it('that lacks or has too much of an hour differs in it, column by column', () => {
    const later = { hourMs: hourMs + 3_600_000 }
    const found = compare([hour(5n), hour(7n, '7', later)], [hour(5n), hour(6n, '6', later)])
    expect(rollupDiscrepancies(found, () => 'a row')).toEqual([
      { check: 'rollups', what: 'usage_1m.count', where: '2026-11-20 11:00', expected: '7', found: '6', note: 'a row' },
      {
        check: 'rollups',
        what: 'usage_1m.cost',
        where: '2026-11-20 11:00',
        expected: '14',
        found: '12',
        note: 'a row',
      },
    ])
  })

  it('without an hour that raw has, or with one that raw has not, differs', () => {
    expect(compare([hour(5n)], [])).toMatchObject([{ columns: [{ expected: 5n, found: 0n }, { expected: 10n }] }])
    expect(compare([], [hour(5n)])).toMatchObject([{ columns: [{ expected: 0n, found: 5n }, { found: 10n }] }])
  })

  it('of other rows with equal sums differs', () => {
    const found = compare([hour(5n)], [hour(5n, 'other')])
    expect(rollupDiscrepancies(found, () => '')).toMatchObject([
      { what: 'usage_1m, rows', found: 'others, of equal sums' },
    ])
  })

  it('may be anywhere between two looks at raw rows that still arrive, but not outside', () => {
    for (const count of [5n, 6n, 7n]) expect(compare([hour(5n)], [hour(count, 'x')], [hour(7n)])).toEqual([])
    for (const count of [4n, 8n]) expect(compare([hour(5n)], [hour(count, 'x')], [hour(7n)])).toHaveLength(1)
    expect(compare([hour(7n)], [hour(6n, 'x')], [hour(5n)])).toEqual([])
  })
})
