import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAmount } from './amount.ts'
import type { PriceLine, PriceList } from './price-list.ts'
import { quote, type RouteUsage } from './quote.ts'

/** A rational number in lowest terms: the model knows no scale, no places and no rounding but its own. */
interface Rational {
  readonly over: bigint
  readonly under: bigint
}

const divisor = (a: bigint, b: bigint): bigint => (b === 0n ? a : divisor(b, a % b))
function rational(over: bigint, under = 1n): Rational {
  const common = divisor(over < 0n ? -over : over, under)
  return { over: over / common, under: under / common }
}
const add = (a: Rational, b: Rational) => rational(a.over * b.under + b.over * a.under, a.under * b.under)
const times = (a: Rational, b: Rational) => rational(a.over * b.over, a.under * b.under)
const isLess = (a: Rational, b: Rational) => a.over * b.under < b.over * a.under
const sumOf = (all: readonly Rational[]) => all.reduce(add, rational(0n))

/** `0.0008` as 1/1250. */
function decimal(text: string): Rational {
  const [whole = '', fraction = ''] = text.split('.')
  return rational(BigInt(whole + fraction), 10n ** BigInt(fraction.length))
}

/** The nearest number with so many places, and the larger of two that are as near; there are no negative prices. */
function rounded(value: Rational, digits: number): Rational {
  const scaled = add(times(value, rational(10n ** BigInt(digits))), rational(1n, 2n))
  return rational(scaled.over / scaled.under, 10n ** BigInt(digits))
}

interface WrittenTier {
  readonly width: bigint
  readonly unit: string
  readonly flat: string
}
interface WrittenLine extends Omit<PriceLine, 'tiers'> {
  readonly tiers: readonly WrittenTier[]
}
interface WrittenList {
  readonly digits: number
  readonly flat: string
  readonly minimum: string
  readonly lines: readonly WrittenLine[]
}

/** The price of a line, from the definition: every tier asks for its own part of the whole. */
function lineModel({ tiers, mode, included, packaging }: WrittenLine, quantity: bigint): Rational {
  const billable = quantity - included
  if (billable <= 0n) return rational(0n)
  let above = billable
  const reached = tiers.flatMap((tier, at) => {
    if (above <= 0n) return []
    const part = at === tiers.length - 1 || above < tier.width ? above : tier.width
    above -= part
    return [{ tier, part }]
  })
  const taken = mode === 'graduated' ? reached : reached.slice(-1).map(({ tier }) => ({ tier, part: billable }))
  const paid = (part: bigint) => {
    if (packaging === undefined) return part
    const full = part / packaging.per
    return packaging.round === 'up' && part > full * packaging.per ? full + 1n : full
  }
  return sumOf(taken.map(({ tier, part }) => add(times(rational(paid(part)), decimal(tier.unit)), decimal(tier.flat))))
}

function totalModel(list: WrittenList, usage: readonly RouteUsage[]): Rational {
  const ownerOf = (route: string) =>
    list.lines.find(({ routes }) => routes?.includes(route)) ?? list.lines.find(({ routes }) => routes === undefined)
  const priced = list.lines.map((line) => {
    const quantity = usage.reduce((sum, row) => (ownerOf(row.route) === line ? sum + row[line.measure] : sum), 0n)
    return rounded(lineModel(line, quantity), list.digits)
  })
  const total = sumOf([decimal(list.flat), ...priced])
  return isLess(total, decimal(list.minimum)) ? decimal(list.minimum) : total
}

const exactly = (text: string) => parseAmount(text) ?? expect.fail(`${text} is no amount`)

function priceListOf({ digits, flat, minimum, lines }: WrittenList): PriceList {
  const amounts = { flat: exactly(flat), minimum: exactly(minimum) }
  const tiersOf = (written: readonly WrittenTier[]) => {
    let upTo = 0n
    return written.map(({ width, unit, flat }, at) => {
      upTo += width
      const end = at === written.length - 1 ? undefined : upTo
      return { upTo: end, unitAmount: exactly(unit), flatAmount: exactly(flat) }
    })
  }
  const read = lines.map((line) => ({ ...line, tiers: tiersOf(line.tiers) }))
  return { name: 'p', currency: 'EUR', digits, ...amounts, lines: read }
}

/** Digits of a number, with zeros before them: what stands behind the point. */
const digitsOf = (places: number) => fc.nat(10 ** Math.min(places, 9) - 1).map((n) => String(n).padStart(places, '0'))

/** Decimals with few or many places, and often those that end in a half of the smallest unit. */
const decimals = (places: number) =>
  fc
    .tuple(fc.nat(5_000), fc.oneof(fc.constantFrom('5', '05', '005', '0005'), digitsOf(12), digitsOf(9), digitsOf(3)))
    .map(([whole, fraction]) => (places === 0 ? String(whole) : `${whole}.${fraction.slice(0, places)}`))
const small = fc.tuple(fc.nat(8), fc.nat(9_999)).map(([zeros, n]) => `0.${'0'.repeat(zeros)}${n}`)
const unitPrices = fc.oneof(decimals(12), small, fc.constantFrom('0', '0.5', '1'))
const quantities = fc.oneof(fc.bigInt(0n, 30n), fc.bigInt(0n, 10n ** 6n), fc.bigInt(0n, 10n ** 24n))
const routes = ['GET /a', 'GET /b', 'GET /c', ''] as const

const writtenLines = fc
  .array(
    fc.record({
      routes: fc.subarray([...routes], { minLength: 1 }),
      measure: fc.constantFrom('units' as const, 'decisions' as const),
      included: fc.oneof(fc.constant(0n), fc.bigInt(0n, 20n)),
      mode: fc.constantFrom('graduated' as const, 'volume' as const),
      packaging: fc.option(
        fc.record({ per: fc.bigInt(1n, 5_000n), round: fc.constantFrom('up' as const, 'down' as const) }),
        { nil: undefined },
      ),
      tiers: fc.array(
        fc.record({
          width: fc.oneof(fc.bigInt(1n, 10n), fc.bigInt(1n, 10n ** 6n)),
          unit: unitPrices,
          flat: fc.oneof(fc.constant('0'), decimals(12)),
        }),
        { minLength: 1, maxLength: 5 },
      ),
    }),
    { maxLength: 4 },
  )
  .chain((lines) =>
    // One of them, anywhere in the list, may take the rest.
    fc.nat(lines.length).map((rest) =>
      lines.map(({ routes, ...line }, at): WrittenLine => {
        return { ...line, name: `l${at}`, routes: at === rest ? undefined : routes }
      }),
    ),
  )

const lists = fc
  .constantFrom(0, 2, 3)
  .chain((digits) =>
    fc.record({
      digits: fc.constant(digits),
      flat: decimals(digits),
      minimum: fc.oneof(fc.constant('0'), decimals(digits)),
      lines: writtenLines,
    }),
  )
const usages = fc.array(fc.record({ route: fc.constantFrom(...routes), units: quantities, decisions: quantities }), {
  maxLength: 6,
})

test('1,000 random price lists price random usage as the model in rational numbers does', () => {
  fc.assert(
    fc.property(lists, usages, (written, usage) => {
      const { total } = quote(priceListOf(written), usage)
      expect(decimal(total)).toEqual(totalModel(written, usage))
      // As many places as the currency has, neither more nor fewer.
      expect((total.split('.')[1] ?? '').length).toBe(written.digits)
    }),
    { numRuns: 1_000 },
  )
})

test('a quote says how its total came about: its parts add up to it', () => {
  fc.assert(
    fc.property(lists, usages, (written, usage) => {
      const { lines, flat, minimum_added, total } = quote(priceListOf(written), usage)
      for (const { tiers, exact, amount, billable, quantity, included } of lines) {
        expect(sumOf(tiers.map((tier) => decimal(tier.amount)))).toEqual(decimal(exact))
        expect(rounded(decimal(exact), written.digits)).toEqual(decimal(amount))
        expect(tiers.reduce((sum, tier) => sum + tier.quantity, 0n)).toBe(billable)
        expect(billable).toBe(quantity > included ? quantity - included : 0n)
      }
      const parts = [flat, minimum_added, ...lines.map(({ amount }) => amount)]
      expect(sumOf(parts.map(decimal))).toEqual(decimal(total))
    }),
    { numRuns: 200 },
  )
})
