import { expect, test } from 'vitest'
import { readExportCursor, writeExportCursor } from './export-cursor.ts'
import type { PriceLine, PriceList } from './price-list.ts'
import { quote } from './quote.ts'
import { rate } from './rated-usage.ts'

const line = (name: string, measure: PriceLine['measure'], routes?: readonly string[]): PriceLine => ({
  name,
  measure,
  routes,
  included: 0n,
  mode: 'graduated',
  tiers: [{ upTo: undefined, unitAmount: 1n, flatAmount: 0n }],
})
const list: PriceList = {
  name: 'api',
  currency: 'EUR',
  digits: 2,
  flat: 0n,
  minimum: 0n,
  lines: [line('search', 'units', ['POST /search']), line('idle', 'units', ['GET /idle']), line('other', 'decisions')],
}
const hourMs = Date.parse('2026-11-20T10:00:00Z')
const hour = {
  subject: 'acme',
  hourMs,
  usage: [
    { route: 'POST /search', units: 9_007_199_254_740_993n, decisions: 3n },
    { route: 'GET /a', units: 10n, decisions: 4n },
    { route: 'GET /b', units: 5n, decisions: 5n },
    { route: 'GET /idle', units: 0n, decisions: 1n },
  ],
}

test('an hour is a row for each line that counted anything, under ids that stay, and others for corrections', () => {
  const { rows, unpriced } = rate(hour, list, undefined)
  expect(rows.map(({ id: _, ...row }) => row)).toEqual(
    [
      ['search', 'units', '9007199254740993'],
      ['other', 'decisions', '9'],
    ].map(([name, unit, quantity]) => ({
      subject: 'acme',
      hour: '2026-11-20T10:00:00.000Z',
      correction: false,
      prices: 'api',
      line: name,
      unit,
      quantity,
    })),
  )
  expect(unpriced).toEqual({ units: 0n, decisions: 0n })
  // Billing systems hold them for years.
  expect(rows[0]?.id).toBe('111ba713-2f6d-5b23-aa56-13bbac5536f7')
  const all = [undefined, 'one', 'two'].flatMap((since) => rate(hour, list, since).rows)
  expect(new Set(all.map(({ id }) => id)).size).toBe(6)
  expect(all.map(({ correction }) => correction)).toEqual([false, false, true, true, true, true])
})

test('what takes back more than the hour had is a row below 0, and what no line counts is named', () => {
  const usage = [{ route: 'POST /search', units: -7n, decisions: 0n }]
  expect(rate({ ...hour, usage }, list, 'one').rows).toMatchObject([{ quantity: '-7', correction: true }])
  const searchOnly = { ...list, lines: list.lines.slice(0, 1) }
  expect(rate(hour, searchOnly, undefined).unpriced).toEqual({ units: 15n, decisions: 10n })
})

test('Exported hours and corrections of a list with packages add up to what the month is quoted by', () => {
  const packed: PriceList = {
    ...list,
    lines: list.lines.map((one) => ({ ...one, included: 100n, packaging: { per: 1_000n, round: 'up' } })),
  }
  const usageOf = (units: number) => [{ route: 'POST /search', units: BigInt(units), decisions: 1n }]
  const hours = [...Array.from({ length: 24 }, () => 130), -20].map((units, at) => ({
    subject: 'acme',
    hourMs: hourMs + at * 3_600_000,
    usage: usageOf(units),
  }))
  const exported = hours.flatMap((one) => rate(one, packed, undefined).rows)
  const sum = exported.reduce((total, { quantity }) => total + BigInt(quantity), 0n)
  const [month] = quote(
    packed,
    hours.flatMap(({ usage }) => usage),
  ).lines
  expect([month?.quantity, month?.tiers[0]?.packages]).toEqual([sum, 3n])
})

test('a cursor is read as it was written, and another text is none', () => {
  const topicId = '6f1c3c86-6a0b-5a0e-9a39-6f7d1f3b2c55'
  const cursor = { fromMs: hourMs, toMs: hourMs + 3_600_000, counted: [[topicId, 3, '18446744073709551']] } as const
  expect(readExportCursor(writeExportCursor(cursor))).toEqual(cursor)
  // An address holds two, in at most 16 kB of headers.
  const partitions = Array.from({ length: 200 }, (_, at) => [topicId, at, '9'.repeat(12)] as const)
  expect(writeExportCursor({ ...cursor, counted: partitions }).length).toBeLessThan(7_000)
  const written = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const wrong of [
    '',
    'x',
    written({}),
    written([hourMs, hourMs - 3_600_000, []]),
    written([hourMs + 1, hourMs + 1, []]),
    written([hourMs, hourMs, [['x', [[0, '1']]]]]),
    written([hourMs, hourMs, [[topicId, [[0, "1'"]]]]]),
    written([hourMs, hourMs, [[topicId, [['0', '1']]]]]),
    written([hourMs, hourMs, [[topicId, [[0, 1]]]]]),
  ]) {
    expect([wrong, readExportCursor(wrong)]).toEqual([wrong, undefined])
  }
})
