import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAmount } from './amount.ts'
import { type Invoice, invoicedPeriods, makeInvoice } from './invoice.ts'
import type { PriceList } from './price-list.ts'
import { quote, type RouteUsage, totalOf } from './quote.ts'
import { readPriceList, writePriceList } from './written-price-list.ts'

const amount = (text: string) => parseAmount(text) ?? expect.fail(text)
const list = (unit: string, { currency = 'EUR', digits = 2 } = {}): PriceList => ({
  ...{ name: 'p', currency, digits, flat: amount('5'), minimum: amount('7') },
  lines: [
    {
      ...{ name: 'a', routes: ['GET /a'], measure: 'units', included: 10n, mode: 'volume' },
      tiers: [
        { upTo: 100n, unitAmount: amount(unit), flatAmount: amount('0.005') },
        { upTo: undefined, unitAmount: amount('0.0001'), flatAmount: 0n },
      ],
    },
    {
      ...{ name: 'rest', routes: undefined, measure: 'decisions', included: 0n, mode: 'graduated' },
      tiers: [{ upTo: undefined, unitAmount: amount(unit), flatAmount: 0n }],
    },
  ],
})

const use = (units: number, decisions = units): readonly RouteUsage[] => [
  { route: 'GET /a', units: BigInt(units), decisions: BigInt(decisions) },
  { route: '', units: BigInt(units), decisions: BigInt(decisions) },
]
const month = (at: number) => ({
  ...{ name: `2026-${at + 10}`, from: `2026-${at + 10}-01T00:00:00.000Z`, to: `2026-${at + 11}-01T00:00:00.000Z` },
  ...{ time_zone: 'UTC', anchor: '1' },
})

/** Closes the months one after the other, each with what is known of all of them by then. */
function close(
  lists: readonly PriceList[],
  known: readonly (readonly (readonly RouteUsage[])[])[],
): readonly Invoice[] {
  const invoices: Invoice[] = []
  for (const [at, usages] of known.entries()) {
    const earlier = invoicedPeriods(invoices).map((invoiced, of) => ({ invoiced, usage: usages[of] ?? [] }))
    invoices.push(
      makeInvoice({
        ...{ id: `i${at}`, subject: 'acme', period: month(at), closedAt: '2027-01-01T00:00:00.000Z', cutoff: [] },
        ...{ acceptedGaps: null, prices: lists[at] ?? list('1'), usage: usages[at] ?? [], earlier },
      }),
    )
  }
  return invoices
}

test('what comes after a month was closed is an adjustment of the next invoice, by the prices of its own month', () => {
  const [first, second] = close([list('0.5'), list('2')], [[use(20)], [use(30), use(1)]])
  // Priced as November: 20 more units of 0.50 and ten more decisions of 0.50; the flat amount is not due again.
  expect([first?.quote.total, second?.quote.total]).toEqual(['20.01', '7.00'])
  expect(second?.adjustments).toEqual([
    { for_period: month(0).from, currency: 'EUR', units: '20', decisions: '20', amount: '10.00' },
  ])
  expect(second?.totals).toEqual([{ currency: 'EUR', amount: '17.00' }])
})

test('an adjustment may be negative, and is made once', () => {
  const [, second, third] = close([list('1')], [[use(50)], [use(20), use(0)], [use(20), use(0), use(0)]])
  expect(second?.adjustments).toMatchObject([{ units: '-60', decisions: '-60', amount: '-60.00' }])
  expect(third?.adjustments).toEqual([])
})

test('corrections of a decision that is lost cost nothing, and the next invoice prices what the decision leaves when it comes', () => {
  const [first, second] = close([list('0.5'), list('2')], [[use(-6, 0)], [use(14, 1), use(0)]])
  expect([first?.units, first?.quote.total]).toEqual(['-12', '7.00'])
  // 4 units beyond the included 10, a flat amount of the tier and one decision: still the minimum.
  expect(second?.adjustments).toMatchObject([{ units: '40', decisions: '2', amount: '0.51' }])
})

test('amounts of two currencies are never added', () => {
  const yen = list('1', { currency: 'JPY', digits: 0 })
  const [, second] = close([yen, list('1')], [[use(20)], [use(21), use(0)]])
  expect(second?.totals).toEqual([
    { currency: 'EUR', amount: '7.00' },
    { currency: 'JPY', amount: '2' },
  ])
})

const usages = fc.tuple(fc.nat(300), fc.nat(300)).map(([units, decisions]) => use(units, decisions))
const prices = fc.constantFrom('0', '0.0049', '0.5', '1.005').map((unit) => list(unit))

test('all invoices together are every month priced by what is known at the last cut-off', () => {
  fc.assert(
    fc.property(
      fc.array(prices, { minLength: 5, maxLength: 5 }),
      fc.array(usages, { minLength: 25, maxLength: 25 }),
      (lists, all) => {
        const known = lists.map((_, at) => all.slice(at * 5, at * 5 + at + 1))
        const invoices = close(lists, known)
        const said = invoicedPeriods(invoices)
        const last = known.at(-1) ?? []
        expect(said.map(({ amount }) => amount)).toEqual(
          last.map((usage, at) => totalOf(lists[at] ?? list('1'), usage)),
        )
        expect(said.map(({ units }) => units)).toEqual(
          last.map((usage) => usage.reduce((sum, { units }) => sum + units, 0n)),
        )
        // Made again of the same parts it is the same text; nothing in it is a number.
        expect(JSON.stringify(close(lists, known))).toBe(JSON.stringify(invoices))
        expect(JSON.stringify(invoices)).not.toMatch(/":-?\d/)
      },
    ),
    { numRuns: 200 },
  )
})

test('a price list that was written and read again prices everything as before', () => {
  fc.assert(
    fc.property(prices, usages, (one, usage) => {
      const again = readPriceList(JSON.parse(JSON.stringify(writePriceList(one))))
      expect(again).toEqual(one)
      expect(quote(again, usage)).toEqual(quote(one, usage))
    }),
  )
  expect(() => readPriceList({ ...writePriceList(list('1')), currency: 'XXX' })).toThrow(RangeError)
  expect(() => readPriceList({ ...writePriceList(list('1')), flat: '1e3' })).toThrow(RangeError)
})
