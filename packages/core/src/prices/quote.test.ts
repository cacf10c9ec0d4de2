import { expect, test } from 'vitest'
import { formatAmount, parseAmount, roundAmount } from './amount.ts'
import { currencies, currencyDigits } from './currencies.ts'
import type { PriceLine, PriceList } from './price-list.ts'
import { quote } from './quote.ts'

const amount = (text: string) => parseAmount(text) ?? expect.fail(`${text} is no amount`)

/** A line from tiers of `up_to`, `unit_amount` and `flat_amount`. */
function line(
  part: Partial<Omit<PriceLine, 'tiers'>>,
  ...tiers: readonly (readonly [upTo: number | undefined, unit: string, flat?: string])[]
): PriceLine {
  const read = tiers.map(([upTo, unit, flat = '0']) => ({
    upTo: upTo === undefined ? undefined : BigInt(upTo),
    unitAmount: amount(unit),
    flatAmount: amount(flat),
  }))
  return { name: 'l', routes: undefined, measure: 'units', included: 0n, mode: 'graduated', ...part, tiers: read }
}

const list = (lines: readonly PriceLine[], { flat = '0', minimum = '0', digits = 2 } = {}): PriceList => {
  return { name: 'p', currency: 'EUR', digits, flat: amount(flat), minimum: amount(minimum), lines }
}
const used = (units: number | bigint, route = '', decisions = 0) => {
  return { route, units: BigInt(units), decisions: BigInt(decisions) }
}

/** The list of docs/prices.md. */
const api = list(
  [
    line(
      { name: 'search', routes: ['POST /v1/search'], included: 100_000n },
      [1_000_000, '0.0008'],
      [undefined, '0.0005', '10.00'],
    ),
    line({ name: 'other', measure: 'decisions' }, [undefined, '0.00002']),
  ],
  { flat: '49.00' },
)

test('the example of docs/prices.md comes to the total that the page shows, step by step', () => {
  const quoted = quote(api, [used(1_500_000, 'POST /v1/search', 300_000), used(7, 'GET /v1/users/:id', 51_007)])
  expect(quoted).toEqual({
    prices: 'p',
    currency: 'EUR',
    flat: '49.00',
    minimum: '0.00',
    minimum_added: '0.00',
    total: '1060.02',
    unpriced: { units: 0n, decisions: 0n },
    lines: [
      {
        name: 'search',
        measure: 'units',
        mode: 'graduated',
        quantity: 1_500_000n,
        included: 100_000n,
        billable: 1_400_000n,
        tiers: [
          { up_to: 1_000_000n, quantity: 1_000_000n, unit_amount: '0.0008', flat_amount: '0', amount: '800' },
          { quantity: 400_000n, unit_amount: '0.0005', flat_amount: '10', amount: '210' },
        ],
        exact: '1010',
        amount: '1010.00',
      },
      {
        name: 'other',
        measure: 'decisions',
        mode: 'graduated',
        quantity: 51_007n,
        included: 0n,
        billable: 51_007n,
        tiers: [{ quantity: 51_007n, unit_amount: '0.00002', flat_amount: '0', amount: '1.02014' }],
        exact: '1.02014',
        amount: '1.02',
      },
    ],
  })
})

const tiers = [
  [10, '5', '1'],
  [20, '3', '2'],
  [undefined, '1', '4'],
] as const

test.each([
  [0, '0.00', '0.00'],
  [1, '6.00', '6.00'],
  [10, '51.00', '51.00'],
  [11, '56.00', '35.00'],
  [20, '83.00', '62.00'],
  [21, '88.00', '25.00'],
  [30, '97.00', '34.00'],
])('%i units cost %s graduated and %s by volume: `up_to` is the last unit of its tier', (units, graduated, volume) => {
  expect(quote(list([line({}, ...tiers)]), [used(units)]).total).toBe(graduated)
  expect(quote(list([line({ mode: 'volume' }, ...tiers)]), [used(units)]).total).toBe(volume)
})

test.each([
  [0, '0.00', '0.00'],
  [1, '2.00', '0.00'],
  [1_000, '2.00', '2.00'],
  [1_001, '4.00', '2.00'],
  [10_000, '20.00', '20.00'],
  [10_001, '21.00', '20.00'],
  [12_500, '23.00', '22.00'],
])('%i units in packages of 1,000 cost %s if a part of one is paid, else %s', (units, up, down) => {
  const packages = (round: 'up' | 'down') =>
    line({ included: 7n, packaging: { per: 1_000n, round } }, [10_000, '2'], [undefined, '1'])
  expect(quote(list([packages('up')]), [used(units + 7)]).total).toBe(up)
  expect(quote(list([packages('down')]), [used(units + 7)]).total).toBe(down)
})

test('A quote names the packages of each tier, and hours of a month are packed together and not one by one', () => {
  const packed = list([line({ packaging: { per: 1_000n, round: 'up' } }, [2_000, '2'], [undefined, '1', '5'])])
  const month = quote(
    packed,
    Array.from({ length: 30 }, () => used(84)),
  )
  expect(month.lines).toMatchObject([{ per: 1_000n, round: 'up', quantity: 2_520n, exact: '10' }])
  expect(month.lines[0]?.tiers.map(({ quantity, packages, amount }) => [quantity, packages, amount])).toEqual([
    [2_000n, 2n, '4'],
    [520n, 1n, '6'],
  ])
})

test('a route belongs to the first line that names it, and without a line for the rest the others cost nothing', () => {
  const first = line({ name: 'a', routes: ['GET /a'] }, [undefined, '1'])
  const second = line({ name: 'b', routes: ['GET /a', 'GET /b'], measure: 'decisions' }, [undefined, '10'])
  const quoted = quote(list([first, second]), [used(1, 'GET /a', 1), used(2, 'GET /b', 3), used(5, '', 6)])
  expect(quoted.lines.map(({ amount }) => amount)).toEqual(['1.00', '30.00'])
  expect(quoted.unpriced).toEqual({ units: 5n, decisions: 6n })
})

test.each(['graduated', 'volume'] as const)(
  'a line with a negative quantity costs nothing and shows it: %s',
  (mode) => {
    const { lines, total } = quote(list([line({ mode }, [undefined, '1'])]), [used(-6)])
    expect(lines).toMatchObject([{ quantity: -6n, billable: 0n, tiers: [], exact: '0', amount: '0.00' }])
    expect(total).toBe('0.00')
  },
)

test.each([
  ['0', 0n],
  ['0.000000000001', 1n],
  ['999999999999.999999999999', 10n ** 24n - 1n],
  ['49.00', 49n * 10n ** 12n],
])('%s is an amount', (text, value) => {
  expect(parseAmount(text)).toBe(value)
  expect(parseAmount(formatAmount(value))).toBe(value)
})

test.each(['', '.5', '1.', '01', '-1', '+1', '1e3', '1,5', ' 1', '0.0000000000001', '1000000000000', '1_000', '١'])(
  '%j is no amount',
  (text) => expect(parseAmount(text)).toBeUndefined(),
)

test.each([
  ['0.005', 2, '0.01'],
  ['0.004999999999', 2, '0.00'],
  ['0.015', 2, '0.02'],
  ['0.5', 0, '1'],
  ['1.0005', 3, '1.001'],
])('%s rounds at %i places to %s, and its negative to the negative of that', (text, digits, rounded) => {
  expect(formatAmount(roundAmount(amount(text), digits), digits)).toBe(rounded)
  const negative = formatAmount(roundAmount(-amount(text), digits), digits)
  expect(negative).toBe(Number(rounded) === 0 ? rounded : `-${rounded}`)
})

test('currencies have the digits of ISO 4217, also where people round otherwise', () => {
  expect(['EUR', 'JPY', 'KWD', 'AFN', 'ISK', 'XXX', 'eur'].map(currencyDigits)).toEqual([2, 0, 3, 2, 0, ...none])
  expect(new Set(currencies).size).toBe(currencies.length)
  for (const code of currencies) expect(code).toMatch(/^[A-Z]{3}$/)
})
const none = [undefined, undefined]
