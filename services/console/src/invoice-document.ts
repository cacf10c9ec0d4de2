import type { AcceptedGaps, Invoice } from '@weir/core/prices/invoice.ts'
import { canonicalJson } from '@weir/policy/entities.ts'
import { type CsvColumns, csvOf } from '@weir/runtime/csv.ts'

/**
 * Returns an invoice as its own subject reads it: without offsets, which tell how much everybody uses, and without the
 * names of what is missing. Equal documents give equal texts, so that this one never changes either.
 */
export function ownDocument(document: string): string {
  const { cutoff: _, accepted_gaps: gaps, ...rest }: Invoice = JSON.parse(document)
  const shown: Omit<AcceptedGaps, 'missing'> | null = gaps === null ? null : { reason: gaps.reason }
  return canonicalJson(JSON.parse(JSON.stringify({ ...rest, accepted_gaps: shown })))
}

const columns: CsvColumns = {
  ...{ invoice: 'text', subject: 'text', period: 'text', from: 'text', to: 'text', kind: 'text', name: 'text' },
  ...{ measure: 'text', included: 'exact', up_to: 'exact', quantity: 'exact', unit_amount: 'exact' },
  ...{ flat_amount: 'exact', amount: 'exact', currency: 'text' },
}

/**
 * Returns an invoice as CSV. In each currency the amounts of `line`, `flat`, `minimum` and `adjustment` come to the one
 * of `total`; a row of kind `tier` says how the line above it came about.
 */
export function invoiceCsv(document: string): string {
  const { id: invoice, subject, period, quote, adjustments, totals }: Invoice = JSON.parse(document)
  const of = { invoice, subject, period: period.name, from: period.from, to: period.to }
  const { currency } = quote
  const lines = quote.lines.flatMap(({ name, measure, included, quantity, amount, tiers }) => [
    { kind: 'line', name, measure, included, quantity, amount },
    ...tiers.map((tier) => ({ kind: 'tier', name, measure, ...tier })),
  ])
  const rest = [
    { kind: 'flat', amount: quote.flat },
    { kind: 'minimum', amount: quote.minimum_added },
  ]
  const later = adjustments.map(({ for_period: name, units: quantity, amount, currency }) => {
    return { kind: 'adjustment', name, measure: 'units', quantity, amount, currency }
  })
  const sums = totals.map((one) => ({ kind: 'total', ...one }))
  return csvOf(
    columns,
    [...lines, ...rest, ...later, ...sums].map((row) => ({ ...of, currency, ...row })),
  )
}
