import { uuidv5 } from '../ids.ts'
import type { PriceList, PriceMeasure } from './price-list.ts'
import { iso } from './priced-month.ts'
import { type RouteUsage, usedByLine } from './quote.ts'

/**
 * What one line of a price list counts of a subject in an hour. It has no amount: tiers and included units are of a
 * month, and the billing system that gets the rows has its own.
 */
export interface RatedUsage {
  /** Follows from the other columns: a row that comes twice is one row to its reader. */
  readonly id: string
  readonly subject: string
  /** First instant of the hour in which the usage was, RFC 3339, UTC. */
  readonly hour: string
  /** Whether the hour was exported before: this comes in addition, and may be negative. */
  readonly correction: boolean
  readonly prices: string
  readonly line: string
  readonly unit: PriceMeasure
  /** A whole number, of any length. */
  readonly quantity: string
}

/** What a subject used in an hour. */
export interface UsedHour {
  readonly subject: string
  readonly hourMs: number
  readonly usage: readonly RouteUsage[]
}

/** Ids of rated usage are UUIDs of version 5 in this namespace; it must never change. */
const namespace = '1d0f8f0c-5d0e-5c39-8a53-0f6f0a3f8b1e'

/**
 * Returns what each line of the price list counts of an hour, and what none does. `correctionOf` names the export that
 * had the hour before.
 */
export function rate({ subject, hourMs, usage }: UsedHour, list: PriceList, correctionOf: string | undefined) {
  const { used, unpriced } = usedByLine(list, usage)
  const hour = iso(hourMs)
  const rows = list.lines.flatMap((one): readonly RatedUsage[] => {
    const { name: line, measure: unit } = one
    const quantity = used.get(one) ?? 0n
    if (quantity === 0n) return []
    const id = uuidv5(namespace, JSON.stringify([subject, hour, list.name, line, unit, correctionOf ?? '']))
    const correction = correctionOf !== undefined
    return [{ id, subject, hour, correction, prices: list.name, line, unit, quantity: String(quantity) }]
  })
  return { rows, unpriced }
}
