import { uuidv5 } from '../ids.ts'
import { type Adjustment, adjust, type InvoicedPeriod, usedIn } from './adjust.ts'
import { type Amount, formatAmount } from './amount.ts'
import { currencyDigits } from './currencies.ts'
import type { PriceList } from './price-list.ts'
import { type Quote, type QuotedLine, type QuotedTier, quote, type RouteUsage, totalOf } from './quote.ts'
import { readPriceList, type WrittenPriceList, writePriceList } from './written-price-list.ts'

/** A month of a subject's own calendar, as it was when it was closed. */
export interface BilledPeriod {
  /** The month in which it begins: `2026-11`. */
  readonly name: string
  /** RFC 3339, UTC. */
  readonly from: string
  readonly to: string
  readonly time_zone: string
  readonly anchor: string
}

/** The last record of a partition that an invoice counts. */
export interface CutoffPlace {
  /** Which life of the topic the offset belongs to. */
  readonly topic_id: string
  readonly partition: string
  readonly offset: string
}

/** What was known to be missing when a period was closed all the same, and why it was. */
export interface AcceptedGaps {
  readonly reason: string
  readonly missing: readonly string[]
}

/** The same with whole numbers as text: programs read large numbers differently, and a document is kept for ever. */
type InText<T> = T extends bigint
  ? string
  : T extends readonly (infer E)[]
    ? readonly InText<E>[]
    : T extends object
      ? { readonly [K in keyof T]: InText<T[K]> }
      : T

/** An invoice: what a subject used in a period by one cut-off, and what it pays. It never changes. */
export interface Invoice {
  readonly v: '1'
  readonly id: string
  readonly subject: string
  readonly period: BilledPeriod
  readonly closed_at: string
  readonly cutoff: readonly CutoffPlace[]
  readonly accepted_gaps: AcceptedGaps | null
  readonly prices: WrittenPriceList
  readonly quote: InText<Quote>
  /** All that was used in the period, priced or not. */
  readonly units: string
  readonly decisions: string
  /** What came too late for earlier invoices. */
  readonly adjustments: readonly Adjustment[]
  /** The quote and the adjustments, by currency: Weir converts none. */
  readonly totals: readonly { readonly currency: string; readonly amount: string }[]
}

/** What an invoice is made of. */
export interface InvoiceParts {
  readonly id: string
  readonly subject: string
  readonly period: BilledPeriod
  readonly closedAt: string
  readonly cutoff: readonly CutoffPlace[]
  readonly acceptedGaps: AcceptedGaps | null
  readonly prices: PriceList
  /** Of the period, up to the cut-off. */
  readonly usage: readonly RouteUsage[]
  /** Closed periods with their usage up to the same cut-off. */
  readonly earlier: readonly { readonly invoiced: InvoicedPeriod; readonly usage: readonly RouteUsage[] }[]
}

/** Ids of invoices follow from subject and period within this namespace. */
const namespace = '6f1c3c86-6a0b-5a0e-9a39-6f7d1f3b2c55'
/** The id of a subject's invoice of a month: the same for everybody who closes it. */
export const invoiceIdOf = (subject: string, month: string): string => uuidv5(namespace, `${subject}\n${month}`)

/** Makes an invoice: equal parts give an equal document. */
export function makeInvoice(parts: InvoiceParts): Invoice {
  const { id, subject, period, closedAt, cutoff, acceptedGaps, prices, usage, earlier } = parts
  const { units, decisions } = usedIn(usage)
  const adjusted = earlier.flatMap(({ invoiced, usage }) => adjust(invoiced, usage) ?? [])
  const totals = new Map<string, Amount>([[prices.currency, totalOf(prices, usage)]])
  for (const { currency, amount } of adjusted) totals.set(currency, (totals.get(currency) ?? 0n) + readMoney(amount))
  return {
    ...{ v: '1', id, subject, period, closed_at: closedAt, cutoff, accepted_gaps: acceptedGaps },
    prices: writePriceList(prices),
    quote: quoteInText(quote(prices, usage)),
    ...{ units: String(units), decisions: String(decisions) },
    adjustments: adjusted,
    totals: Array.from(totals, ([currency, amount]) => {
      return { currency, amount: formatAmount(amount, currencyDigits(currency)) }
    }),
  }
}

/** Sums what all invoices of a subject have said of each period so far, in the order of the periods. */
export function invoicedPeriods(invoices: readonly Invoice[]): readonly InvoicedPeriod[] {
  const ordered = invoices.toSorted((a, b) => (a.period.from < b.period.from ? -1 : 1))
  return ordered.map(({ period, prices, units, decisions, quote }) => {
    const later = invoices.flatMap(({ adjustments }) => adjustments.filter((one) => one.for_period === period.from))
    return {
      period: period.from,
      prices: readPriceList(prices),
      units: later.reduce((sum, one) => sum + BigInt(one.units), BigInt(units)),
      decisions: later.reduce((sum, one) => sum + BigInt(one.decisions), BigInt(decisions)),
      amount: later.reduce((sum, one) => sum + readMoney(one.amount), readMoney(quote.total)),
    }
  })
}

/** Reads an amount of any length and sign that `formatAmount` wrote. */
function readMoney(text: string): Amount {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(text) ?? []
  if (whole === '') throw new RangeError(`an invoice has the amount ${text}`)
  const size = BigInt(whole + fraction.padEnd(12, '0'))
  return sign === '' ? size : -size
}

function quoteInText({ lines, unpriced, ...texts }: Quote): InText<Quote> {
  const { units, decisions } = unpriced
  return { ...texts, lines: lines.map(lineInText), unpriced: { units: String(units), decisions: String(decisions) } }
}

function lineInText({ quantity, included, billable, tiers, ...texts }: QuotedLine): InText<QuotedLine> {
  const counts = { quantity: String(quantity), included: String(included), billable: String(billable) }
  return { ...texts, ...counts, tiers: tiers.map(tierInText) }
}

function tierInText({ up_to, quantity, ...texts }: QuotedTier): InText<QuotedTier> {
  return { ...texts, quantity: String(quantity), ...(up_to === undefined ? {} : { up_to: String(up_to) }) }
}
