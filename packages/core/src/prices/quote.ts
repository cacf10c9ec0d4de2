import { type Amount, formatAmount, roundAmount } from './amount.ts'
import type { Packaging, PriceLine, PriceList, PriceMeasure, PriceTier } from './price-list.ts'

/** What one route was used in a period, by allowed decisions. */
export interface RouteUsage {
  /** As records have it: `POST /v1/search`, or empty for requests without a route. */
  readonly route: string
  readonly units: bigint
  readonly decisions: bigint
}

/** How much fell into a tier, and what it costs. */
export interface QuotedTier {
  /** Absent in the last tier. */
  readonly up_to?: bigint
  readonly quantity: bigint
  /** What `unit_amount` is the price of, of a line with `per`. */
  readonly packages?: bigint
  readonly unit_amount: string
  readonly flat_amount: string
  /** `quantity × unit_amount + flat_amount`, exactly; of a line with `per`, of `packages` instead. */
  readonly amount: string
}

/** How a line's amount came about. */
export interface QuotedLine extends Pick<PriceLine, 'name' | 'measure' | 'mode' | 'included'> {
  /** Units of a package, and how a part of one is rounded; absent without packages. */
  readonly per?: bigint
  readonly round?: Packaging['round']
  readonly quantity: bigint
  /** The quantity beyond what is included. */
  readonly billable: bigint
  /** The tiers that were reached. */
  readonly tiers: readonly QuotedTier[]
  /** The sum of the tiers, exactly. */
  readonly exact: string
  /** The exact amount, rounded once: half away from zero. */
  readonly amount: string
}

/** The price of a period and how it came about, as answers and invoices have it. Amounts are decimal text. */
export interface Quote {
  readonly prices: string
  readonly currency: string
  readonly lines: readonly QuotedLine[]
  readonly flat: string
  readonly minimum: string
  /** What the minimum adds to flat amount and lines. */
  readonly minimum_added: string
  readonly total: string
  /** What no line takes, and costs nothing. */
  readonly unpriced: Readonly<Record<PriceMeasure, bigint>>
}

/**
 * Prices the usage of one period. Every step is exact but one: a line's amount is rounded to the currency's smallest
 * unit, and the total is the sum of the rounded lines. A route may come in several rows.
 * A line whose quantity is negative costs nothing.
 */
export function quote(list: PriceList, usage: Iterable<RouteUsage>): Quote {
  const { digits, flat, minimum } = list
  const { lines, sum, added, unpriced } = priceUsage(list, usage)
  const money = (amount: Amount) => formatAmount(amount, digits)
  return {
    prices: list.name,
    currency: list.currency,
    lines: lines.map(({ line }) => line),
    flat: money(flat),
    minimum: money(minimum),
    minimum_added: money(added),
    total: money(sum + added),
    unpriced,
  }
}

/** Returns the total of the quote. */
export function totalOf(list: PriceList, usage: Iterable<RouteUsage>): Amount {
  const { sum, added } = priceUsage(list, usage)
  return sum + added
}

function priceUsage(list: PriceList, usage: Iterable<RouteUsage>) {
  const { used, unpriced } = usedByLine(list, usage)
  const lines = list.lines.map((line) => quoteLine(line, used.get(line) ?? 0n, list.digits))
  const sum = lines.reduce((total, { rounded }) => total + rounded, list.flat)
  return { lines, sum, added: sum < list.minimum ? list.minimum - sum : 0n, unpriced }
}

/** Sums the usage by the line that takes it: the first that names the route, else the line without routes. */
export function usedByLine(list: PriceList, usage: Iterable<RouteUsage>) {
  const byRoute = new Map<string, PriceLine>()
  for (const line of list.lines.toReversed()) for (const route of line.routes ?? []) byRoute.set(route, line)
  const rest = list.lines.find(({ routes }) => routes === undefined)
  const used = new Map<PriceLine, bigint>()
  const unpriced = { units: 0n, decisions: 0n }
  for (const { route, ...counts } of usage) {
    const line = byRoute.get(route) ?? rest
    if (line !== undefined) {
      used.set(line, (used.get(line) ?? 0n) + counts[line.measure])
      continue
    }
    unpriced.units += counts.units
    unpriced.decisions += counts.decisions
  }
  return { used, unpriced }
}

function quoteLine(line: PriceLine, quantity: bigint, digits: number) {
  const { name, measure, mode, included, packaging } = line
  const billable = quantity > included ? quantity - included : 0n
  const parts = mode === 'graduated' ? graduated(line.tiers, billable) : volume(line.tiers, billable)
  let exact = 0n
  const tiers = parts.map(({ tier, quantity }) => {
    const packages = packaging === undefined ? undefined : packagesOf(quantity, packaging)
    const amount = (packages ?? quantity) * tier.unitAmount + tier.flatAmount
    exact += amount
    const unit_amount = formatAmount(tier.unitAmount)
    const flat_amount = formatAmount(tier.flatAmount)
    const end = tier.upTo === undefined ? {} : { up_to: tier.upTo }
    const paid = packages === undefined ? { quantity } : { quantity, packages }
    return { ...end, ...paid, unit_amount, flat_amount, amount: formatAmount(amount) }
  })
  const rounded = roundAmount(exact, digits)
  const amounts = { exact: formatAmount(exact), amount: formatAmount(rounded, digits) }
  return { rounded, line: { name, measure, mode, ...packaging, quantity, included, billable, tiers, ...amounts } }
}

const packagesOf = (quantity: bigint, { per, round }: Packaging): bigint =>
  (round === 'up' ? quantity + per - 1n : quantity) / per

interface TierPart {
  readonly tier: PriceTier
  readonly quantity: bigint
}

/** Splits the quantity among the tiers that it reaches. */
function graduated(tiers: readonly PriceTier[], billable: bigint): readonly TierPart[] {
  const parts: TierPart[] = []
  let from = 0n
  for (const tier of tiers) {
    if (billable <= from) break
    const end = tier.upTo !== undefined && tier.upTo < billable ? tier.upTo : billable
    parts.push({ tier, quantity: end - from })
    from = end
  }
  return parts
}

/** The whole quantity in the tier that it reaches; none without any. */
function volume(tiers: readonly PriceTier[], billable: bigint): readonly TierPart[] {
  const tier = tiers.find(({ upTo }) => upTo === undefined || billable <= upTo)
  return tier === undefined || billable === 0n ? [] : [{ tier, quantity: billable }]
}
