import type { Units } from '../limits/limit-store.ts'
import type { Amount } from './amount.ts'

/** Prices of one unit each, by the unit's name. An `Amount` is a thousandth of a nano-unit of the currency. */
export type UnitPrices = ReadonlyMap<string, Amount>

/** Prices that hold from a time on, for one kind of request. */
export interface RateEntry {
  /** The dimension whose value `pattern` matches, such as `model`; empty for every request. */
  readonly dimension: string
  /** `*` stands for any characters. Empty without a dimension. */
  readonly pattern: string
  readonly fromMs: number
  readonly prices: UnitPrices
  /** All prices of a request that uses more input tokens; absent for the same. */
  readonly above?: { readonly inputTokens: number; readonly prices: UnitPrices } | undefined
}

/** Most tokens of a model, where neither the request nor its meter says them. */
export interface ModelBounds {
  readonly context?: number | undefined
  readonly maxOutput?: number | undefined
}

/** What happens to a request that no entry prices: it is refused, counted as free, or priced by the entry `*`. */
export const unknownChoices = ['refuse', 'count', 'default'] as const

/** What requests cost. Its name is a unit: whole nano-units of the currency. */
export interface RateCard {
  readonly name: string
  /** Of ISO 4217. */
  readonly currency: string
  readonly unknown: (typeof unknownChoices)[number]
  readonly entries: readonly RateEntry[]
  /** By patterns of models. */
  readonly models: ReadonlyMap<string, ModelBounds>
}

/** The unit of requests that a card had no price for. */
export const unpricedUnit = 'unpriced'

/** What a request used, with its cost and itself among the units. */
export const withRequest = (units: Units, cost: number, requests = 1): Units =>
  new Map([...units, ['cost', cost], ['requests', requests]])

/** The most that a request can cost: 1,000 units of the currency. With it, counts and sums stay exact. */
export const nanosPerRequestMax = 1_000_000_000_000

/** By unit, the unit that it is a part of: a card that prices the part prices the rest of the whole without it. */
const wholeOf: ReadonlyMap<string, string> = new Map([
  ['input_tokens', 'tokens'],
  ['output_tokens', 'tokens'],
  ['cache_read_input_tokens', 'input_tokens'],
  ['cache_creation_input_tokens', 'input_tokens'],
  ['cache_creation_1h_input_tokens', 'cache_creation_input_tokens'],
  ['reasoning_output_tokens', 'output_tokens'],
])

/** A unit's wholes, from the next on. */
function wholesOf(unit: string): readonly string[] {
  const whole = wholeOf.get(unit)
  return whole === undefined ? [] : [whole, ...wholesOf(whole)]
}

/** One line of a price: what it is of, how much, and what each costs. */
export interface RateLine {
  readonly entry: RateEntry
  readonly unit: string
  readonly quantity: number
  readonly price: Amount
}

const isAbove = ({ inputTokens }: { readonly inputTokens: number }, units: Units) =>
  (units.get('input_tokens') ?? 0) > inputTokens

/** Returns the lines of an entry for what was used; none for what was not. */
export function linesOf(entry: RateEntry, units: Units): readonly RateLine[] {
  const { above } = entry
  const prices = above !== undefined && isAbove(above, units) ? above.prices : entry.prices
  const rest = new Map(Array.from(prices.keys(), (unit) => [unit, units.get(unit) ?? 0]))
  for (const unit of prices.keys()) {
    const whole = wholesOf(unit).find((one) => prices.has(one))
    if (whole !== undefined) rest.set(whole, (rest.get(whole) ?? 0) - (units.get(unit) ?? 0))
  }
  return [...prices].flatMap(([unit, price]) => {
    const quantity = rest.get(unit) ?? 0
    return quantity > 0 ? [{ entry, unit, quantity, price }] : []
  })
}

const thousand = 1_000n
/** Returns the sum of the lines in whole nano-units, rounded half up once; at most `nanosPerRequestMax`. */
export function nanosOf(lines: readonly RateLine[]): number {
  const sum = lines.reduce((before, { quantity, price }) => before + BigInt(quantity) * price, thousand / 2n)
  return Math.min(nanosPerRequestMax, Number(sum / thousand))
}

/**
 * Returns the most that units can cost by one of the entries, in whole nano-units, rounded up: each at the dearest
 * price of itself, its parts and its wholes. What is part of another of the units costs nothing of its own.
 */
export function mostNanosOf(entries: readonly RateEntry[], units: Units): number {
  const prices = entries.flatMap(({ prices: base, above }) =>
    above !== undefined && isAbove(above, units) ? [...base, ...above.prices] : [...base],
  )
  const isHalved = units.has('input_tokens') && units.has('output_tokens')
  let sum = 0n
  for (const [unit, quantity] of units) {
    const isPart = wholesOf(unit).some((whole) => whole !== 'tokens' && units.has(whole))
    if (isPart || (unit === 'tokens' && isHalved)) continue
    const isIts = (priced: string) =>
      priced === unit || wholesOf(priced).includes(unit) || wholesOf(unit).includes(priced)
    const dearest = prices.reduce((most, [priced, price]) => (price > most && isIts(priced) ? price : most), 0n)
    sum += BigInt(quantity) * dearest
  }
  return Number((sum + thousand - 1n) / thousand)
}
