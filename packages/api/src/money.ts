import { answer, media, operation } from './operation.ts'
import {
  closed,
  defaulted,
  described,
  flag,
  list,
  numberOrNull,
  type Of,
  object,
  oneOf,
  optional,
  pageQuery,
  text,
  textOrNull,
  whole,
} from './schema.ts'
import { Type } from './type.ts'
import { completeness } from './usage.ts'

/** Whole units, which servers count beyond 2^53. */
const units = (description: string) => Type.Unsafe<number | bigint>({ type: 'integer', description })
const decimal = (description: string) => text(`decimal: ${description}`)
const quoteLine = object({
  name: text('line name'),
  measure: text('units or decisions'),
  mode: text('graduated or volume'),
  per: optional(units('units per package; absent without packages')),
  round: optional(text('up or down: how a partial package is rounded')),
  quantity: units('quantity used'),
  included: units('quantity free of charge'),
  billable: units('quantity beyond `included`'),
  tiers: list(
    object({
      up_to: optional(units('last unit of the tier, not counting included units; absent in the last tier')),
      quantity: units('units in the tier'),
      packages: optional(units('packages in the tier, for a line with `per`')),
      unit_amount: decimal('price per unit or package'),
      flat_amount: decimal('flat fee, charged once'),
      amount: decimal('quantity (or packages) × unit_amount + flat_amount, exact'),
    }),
    'the tiers reached',
  ),
  exact: decimal('sum of the tiers, exact'),
  amount: decimal('`exact` rounded once, half away from zero, to the smallest unit of the currency'),
})
/** A line of a quote. */
export type QuoteLine = Of<typeof quoteLine>
const quote = object({
  prices: text('name of the price list'),
  currency: text('ISO 4217'),
  lines: list(quoteLine),
  flat: decimal('flat fee for the period'),
  minimum: decimal('minimum total'),
  minimum_added: decimal('amount added to reach the minimum'),
  total: decimal('`flat` + amounts of all lines + `minimum_added`'),
  unpriced: object(
    { units: units('units used'), decisions: units('number of decisions') },
    'decisions of routes without a line; free of charge',
  ),
})
/** The price of a period and how it came about. */
export type Quote = Of<typeof quote>

const quantity = (description: string) =>
  defaulted(whole(description, { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }))
/** What usage costs by a price list. */
export const quoteUsage = operation('POST /v1/prices/:name/quote', {
  tag: 'prices',
  scope: 'billing',
  summary: 'Price the usage of a period with a price list, step by step',
  params: { name: text('price list name') },
  body: closed({
    usage: list(
      closed({
        route: defaulted(
          text('as in records, such as `POST /v1/search`; omit for requests without a route', { default: '' }),
        ),
        units: quantity('units used'),
        decisions: quantity('number of decisions'),
      }),
      'allowed decisions of one period; several rows of a route are summed',
      // A policy has fewer routes than fit into a body.
      { maxItems: 10_000 },
    ),
  }),
  answers: { 200: answer('The price and its calculation', quote) },
  problems: [404, 503],
})

const spend = object({
  subject: text('subject id'),
  draft: flag('always true: the sums of a current month still change'),
  period: object({
    from: text('RFC 3339: start of the current month, in the subject’s time zone and from its anchor'),
    to: text('RFC 3339: start of the next month'),
    time_zone: text('time zone of the subject'),
    anchor: whole('day of the month on which billing months begin'),
  }),
  ...completeness,
  quote: described(quote, 'price of the usage counted so far'),
  forecast: optional(described(quote, 'price of the whole month at the average rate so far; absent on its first day')),
})
/** What the running month of a subject costs so far. */
export type Spend = Of<typeof spend>
/** What the running month of a subject costs so far, and at this pace. */
export const getSpend = operation('GET /v1/spend', {
  tag: 'prices',
  scope: 'billing',
  reach: 'own',
  summary: 'Get what a subject’s current month costs so far',
  query: { subject: text('subject id') },
  answers: { 200: answer('The cost so far', spend) },
  problems: [404, 503],
})

const money = {
  currency: text('ISO 4217'),
  amount: decimal('price of the usage counted in the month'),
  previous: decimal('price of the month before, at the current price list'),
  change: numberOrNull('change from `previous`: 0.12 is 12% more; null from 0'),
  forecast: textOrNull(
    'decimal: price of the whole month at the average rate so far; null on its first day and once it has ended',
  ),
}
const monthSpend = object({
  period: text('as requested'),
  ...completeness,
  totals: list(object(money), 'totals by currency'),
  rows: list(
    object({
      subject: text('subject id'),
      plan: text('plan of the subject'),
      from: text('RFC 3339: start of the month, in the subject’s time zone and from its anchor'),
      to: text('RFC 3339: start of the next month'),
      time_zone: text('time zone of the subject'),
      ...money,
    }),
    'subjects with a price list, highest amount first',
  ),
  left_out: whole('subjects beyond `top`, included in the totals'),
})
/** What a month costs every customer. */
export type MonthSpend = Of<typeof monthSpend>
/** What a month costs every customer, each in its own zone. */
export const listSpend = operation('GET /v1/spend/month', {
  tag: 'prices',
  scope: 'billing',
  summary: 'Get the cost of a month for all customers, each in its own time zone, with totals by currency',
  query: {
    period: defaulted(
      text('`2026-11`, `current` or `previous`', { pattern: '^(\\d{4}-\\d{2}|current|previous)$', default: 'current' }),
    ),
    top: defaulted(whole('rows of JSON', { minimum: 1, maximum: 10_000, default: 1_000 })),
    format: defaulted(described(oneOf(['json', 'csv']), '`csv`: all rows as a file', { default: 'json' })),
  },
  answers: { 200: media('The month', { 'application/json': monthSpend, 'text/csv': { type: 'string' } }) },
  problems: [422, 503, 504],
})

const ratedUsage = object({
  id: text('UUID; the same if a row is exported again'),
  subject: text('subject id'),
  hour: text('RFC 3339: start of the hour of the usage'),
  correction: flag('the hour was exported before; add this row to it'),
  prices: text('name of the price list'),
  line: text('name of the line in the price list'),
  unit: oneOf(['units', 'decisions'], 'what the line counts'),
  quantity: text('a whole number; may be negative for a correction'),
})
const usageExport = object({
  from: text('RFC 3339: first hour of the first export'),
  to: text('RFC 3339: end of the last whole hour'),
  cursor: text('`since` of the next export, or `until` to repeat this one'),
  ...completeness,
  unpriced: object(
    { units: text('a whole number'), decisions: text('a whole number') },
    'usage on this page that no line of a price list counts',
  ),
  items: list(ratedUsage),
  next: textOrNull('`after` of the next page; null on the last. Request it with `until`, the cursor of this page'),
})
/** A page of rated usage. */
export type UsageExport = Of<typeof usageExport>
/** Usage of whole hours by line of the price list, for billing systems. */
export const exportUsage = operation('GET /v1/usage/export', {
  tag: 'usage',
  scope: 'billing',
  summary: 'Export usage of whole hours by price list line, for billing systems',
  query: {
    ...pageQuery,
    from: optional(text('first hour of the first export: RFC 3339, a date, or now-24h')),
    since: optional(text('cursor of the previous export')),
    until: optional(text('cursor of this export, for its next page or to repeat it')),
  },
  answers: { 200: answer('A page of usage', usageExport) },
  problems: [422, 503, 504],
})
