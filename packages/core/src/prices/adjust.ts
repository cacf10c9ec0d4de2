import { type Amount, formatAmount } from './amount.ts'
import type { PriceList } from './price-list.ts'
import { type RouteUsage, totalOf } from './quote.ts'

/** What invoices have said so far of one closed period: its own invoice and the adjustments of later ones. */
export interface InvoicedPeriod {
  /** The period's first instant, which names it. */
  readonly period: string
  /** As used by the period's own invoice, whatever the policy says by now. */
  readonly prices: PriceList
  readonly units: bigint
  readonly decisions: bigint
  readonly amount: Amount
}

/** What a later invoice corrects of a closed period. Any of its numbers may be negative. */
export interface Adjustment {
  readonly for_period: string
  readonly currency: string
  readonly units: string
  readonly decisions: string
  readonly amount: string
}

/**
 * Returns what the usage that is known now changes of a closed period: the period priced from scratch by its own price
 * list, less what was invoiced. All invoices together then have exactly what is known now.
 *
 * @returns undefined if nothing came later.
 */
export function adjust(invoiced: InvoicedPeriod, usage: readonly RouteUsage[]): Adjustment | undefined {
  const { period, prices } = invoiced
  const now = usedIn(usage)
  const amount = totalOf(prices, usage) - invoiced.amount
  const [units, decisions] = [now.units - invoiced.units, now.decisions - invoiced.decisions]
  if (units === 0n && decisions === 0n && amount === 0n) return undefined
  return {
    ...{ for_period: period, currency: prices.currency, units: String(units), decisions: String(decisions) },
    amount: formatAmount(amount, prices.digits),
  }
}

/** Returns all units and decisions of some usage. */
export function usedIn(usage: readonly RouteUsage[]): Pick<RouteUsage, 'units' | 'decisions'> {
  return usage.reduce(
    (sum, { units, decisions }) => ({ units: sum.units + units, decisions: sum.decisions + decisions }),
    { units: 0n, decisions: 0n },
  )
}
