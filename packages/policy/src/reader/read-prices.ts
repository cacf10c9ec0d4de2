import { type Amount, amountPattern, formatAmount, parseAmount, roundAmount } from '@weir/core/prices/amount.ts'
import { currencies, currencyDigits } from '@weir/core/prices/currencies.ts'
import {
  type PriceLine,
  type PriceList,
  type PriceTier,
  packageRounds,
  priceMeasures,
  tierModes,
} from '@weir/core/prices/price-list.ts'
import type { Route } from '../policy.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Lists are made by people, one for each offer. */
const listsMax = 1_000
/** A quote with more lines is read by no one. */
const linesMax = 100
/** More steps are a curve, which no customer can check. */
const tiersMax = 50

/** The price lists by name; undefined for one that is there but wrong. */
export type Prices = ReadonlyMap<string, PriceList | undefined>

/** An amount of money. */
export const amount = t.text(
  'a decimal in quotes, of at most 12 digits before and after the point, such as "0.0008"',
  parseAmount,
  { pattern: amountPattern.source },
)
/** The code of a currency. */
export const currency = t.text(
  'a currency of ISO 4217 such as EUR',
  (code) => (currencyDigits(code) === undefined ? undefined : code),
  { enum: currencies },
)

const tier = t.object('a tier', {
  up_to: t.optional(
    'Last unit of the tier, not counting included units. Required in every tier but the last.',
    t.integer(1, Number.MAX_SAFE_INTEGER),
  ),
  unit_amount: t.required('Price per unit, a quoted decimal.', amount),
  flat_amount: t.withDefault('Flat fee, charged once if the tier is reached. Default: 0.', amount, 0n),
})
const tierList = t.list('a list of tiers', t.located(tier), {
  min: 1,
  max: tiersMax,
  wrongCount: (count) =>
    count === 0 ? 'needs at least one tier' : `has ${count} tiers; a line has at most ${tiersMax}`,
})

/** Tiers in ascending order, of which the last has no end. */
const tiers: t.ValueType<readonly PriceTier[]> = {
  schema: tierList.schema,
  read(reader, at) {
    const before = reader.problemCount
    const found = tierList.read(reader, at)
    if (found === undefined || reader.problemCount > before) return undefined
    let end = 0
    for (const [index, { value, at: tierAt }] of found.entries()) {
      const { up_to: upTo } = value
      const isLast = index === found.length - 1
      if (isLast && upTo !== undefined) return reader.problem(tierAt, 'is the last tier, which must not have `up_to`')
      if (isLast) break
      if (upTo === undefined) return reader.problem(tierAt, 'needs `up_to`; only the last tier omits it')
      if (upTo <= end) return reader.problem(tierAt, `ends at ${upTo}, but the previous tier ends at ${end}`)
      end = upTo
    }
    return found.map(({ value: { up_to: upTo, unit_amount: unitAmount, flat_amount: flatAmount } }) => {
      return { upTo: upTo === undefined ? undefined : BigInt(upTo), unitAmount, flatAmount }
    })
  },
}

const routeName = t.located(t.anyText('the `match` of a route'))
const line = t.object(
  'a line',
  {
    name: t.required('Name of the line in quotes.', t.name),
    routes: t.optional(
      'Routes by their `match`. One line may omit it to cover all other routes.',
      t.list('a list of routes by their match', routeName, { min: 1, nameOf: ({ value }) => value }),
    ),
    measure: t.required('What to count: units used by allowed requests, or allowed decisions.', t.oneOf(priceMeasures)),
    included: t.withDefault('Free units per period.', t.integer(0, Number.MAX_SAFE_INTEGER), 0),
    mode: t.withDefault(
      'graduated: each unit at the price of its tier; volume: all units at the price of the tier reached.',
      t.oneOf(tierModes),
      'graduated',
    ),
    per: t.optional(
      'Units per package; `unit_amount` is then the price of a package. Packages are counted over the whole period.',
      t.integer(2, Number.MAX_SAFE_INTEGER),
    ),
    round: t.optional(
      'up: charges for partial packages; down: only for full ones. Default: up.',
      t.oneOf(packageRounds),
    ),
    tiers: t.required('Prices by quantity.', tiers),
  },
  t.implies(t.has('round'), t.has('per')),
)

const lineList = t.list('a list of lines', t.located(line), {
  max: linesMax,
  wrongCount: (count) => `has ${count} lines; a price list has at most ${linesMax}`,
})

const priceList = t.object('a price list', {
  currency: t.required('ISO 4217 code.', currency),
  flat: t.withDefault('Flat fee per period, whatever the usage. Default: 0.', amount, 0n),
  minimum: t.withDefault('Minimum total per period. Default: 0.', amount, 0n),
  lines: t.required('What is charged for; may be empty.', lineList),
})

/** The section `prices`. */
export const priceEntries = t.entries(priceList.schema, { plural: 'price lists', one: 'a price list', max: listsMax })

/** The name of a price list, which `pricesNamed` looks up. */
export const pricesName = t.anyText('the name of a price list')

/** The price list that the key `prices` names; undefined if there is none, or none of that name. */
export function pricesNamed(
  reader: PolicyReader,
  fields: Fields,
  name: string | undefined,
  prices: ReadonlyMap<string, unknown>,
): { readonly prices?: string } {
  const at = fields.get('prices')
  if (at === undefined || name === undefined) return {}
  reader.find(at, 'price list', name, prices)
  return { prices: name }
}

/** Reads the price lists, and returns the check of their routes, for when the routes are read. */
export function readPrices(reader: PolicyReader, at: SourcePosition) {
  const named: t.Located<string>[] = []
  const lists: Prices = priceEntries.each(reader, at, (name, field) => {
    const before = reader.problemCount
    const written = priceList.find(reader, field)
    const lines = readLines(reader, written?.values.lines ?? [], named)
    const digits = currencyDigits(written?.values.currency ?? '')
    if (written !== undefined && digits !== undefined) checkDigits(reader, written.fields, written.values, digits)
    const { currency: code, flat = 0n, minimum = 0n } = written?.values ?? {}
    const isRight = reader.problemCount === before && code !== undefined && digits !== undefined
    return isRight ? { name, currency: code, digits, flat, minimum, lines } : undefined
  })
  const checkRoutes = (routes: readonly Route[]) => {
    const templates = new Map(routes.map(({ template }) => [template, true]))
    for (const { value, at } of named) reader.find(at, 'route', value, templates)
  }
  return { lists, checkRoutes }
}

/** Amounts of a period are paid as they are written, so that they are never finer than the smallest unit. */
function checkDigits(
  reader: PolicyReader,
  fields: Fields,
  values: { readonly flat: Amount | undefined; readonly minimum: Amount | undefined },
  digits: number,
): void {
  for (const key of ['flat', 'minimum'] as const) {
    const [at, value] = [fields.get(key), values[key]]
    const fine = at === undefined || value === undefined ? undefined : tooFine(value, digits)
    if (at !== undefined && fine !== undefined) reader.problem(at, fine)
  }
}

/** What is wrong with an amount that is finer than the currency's smallest unit; undefined for nothing. */
function tooFine(value: Amount, digits: number): string | undefined {
  if (roundAmount(value, digits) === value) return undefined
  const places = digits === 0 ? 'no decimal places' : `at most ${digits} decimal places`
  return `must have ${places}, like the currency, but is ${formatAmount(value)}`
}

/** A package over the end of a tier would have two prices. */
function checkPackages(reader: PolicyReader, at: SourcePosition, per: bigint, tiers: readonly PriceTier[]): void {
  const wrong = tiers.find(({ upTo = 0n }) => upTo % per !== 0n)
  if (wrong !== undefined)
    reader.problem(at, `has a tier up to ${wrong.upTo}, which is not a multiple of its \`per\`, ${per}`)
}

type WrittenLines = NonNullable<ReturnType<typeof lineList.read>>

function readLines(reader: PolicyReader, written: WrittenLines, named: t.Located<string>[]): readonly PriceLine[] {
  const names = new Set<string>()
  let rest: string | undefined
  return written.map(({ value, at }) => {
    const { name, routes, included, per, round, ...others } = value
    if (per !== undefined && others.mode === 'graduated') checkPackages(reader, at, BigInt(per), others.tiers)
    if (round !== undefined && per === undefined) reader.problem(at, '`round` applies to packages and needs `per`')
    const packaging = per === undefined ? {} : { packaging: { per: BigInt(per), round: round ?? 'up' } }
    if (names.has(name)) reader.problem(at, `another line is also called ${name}`)
    names.add(name)
    if (routes === undefined && rest !== undefined) {
      reader.problem(at, `covers all other routes, but the line ${rest} already does`)
    }
    if (routes === undefined) rest ??= name
    named.push(...(routes ?? []))
    return { name, routes: routes?.map(({ value }) => value), included: BigInt(included), ...packaging, ...others }
  })
}
