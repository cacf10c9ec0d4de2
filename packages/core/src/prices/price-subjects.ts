import type { PriceList } from './price-list.ts'
import { type Quote, quote, type RouteUsage } from './quote.ts'

/** What one route was used by a subject in a period. */
export interface SubjectUsage extends RouteUsage {
  readonly subject: string
  /** Names the period, such as its first instant; every period has its own flat amount, tiers and minimum. */
  readonly period: string
}

/** The price of a subject's period. */
export interface SubjectQuote {
  readonly subject: string
  readonly period: string
  /** Undefined for a subject without a price list. */
  readonly quote: Quote | undefined
}

/**
 * Prices rows of usage by subject and period, in the order in which these first occur. The rows must cover whole
 * periods of the subject's own calendar and every route of them, or tiers and included units would count too little.
 */
export function priceSubjects(
  rows: Iterable<SubjectUsage>,
  pricesOf: (subject: string) => PriceList | undefined,
): readonly SubjectQuote[] {
  const groups = Map.groupBy(rows, ({ subject, period }) => JSON.stringify([subject, period]))
  return Array.from(groups.values(), (usage) => {
    const { subject = '', period = '' } = usage[0] ?? {}
    const prices = pricesOf(subject)
    return { subject, period, quote: prices === undefined ? undefined : quote(prices, usage) }
  })
}
