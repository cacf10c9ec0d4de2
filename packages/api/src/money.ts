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
  name: text('of the line'),
  measure: text('units or decisions'),
  mode: text('graduated or volume'),
  per: optional(units('units of a package; absent without packages')),
  round: optional(text('up or down: how a part of a package is counted')),
  quantity: units('what was used'),
  included: units('what costs nothing'),
  billable: units('the quantity beyond that'),
  tiers: list(
    object({
      up_to: optional(units('the last unit of the tier, counted after the included ones; absent in the last tier')),
      quantity: units('units in it'),
      packages: optional(units('packages in it, of a line with `per`')),
      unit_amount: decimal('of a unit, or of a package'),
      flat_amount: decimal('added once'),
      amount: decimal('quantity (or packages) × unit_amount + flat_amount, exactly'),
    }),
    'the tiers that were reached',
  ),
  exact: decimal('the sum of the tiers, exactly'),
  amount: decimal('that, rounded once, half away from zero, to the smallest unit of the currency'),
})
/** A line of a quote. */
export type QuoteLine = Of<typeof quoteLine>
const quote = object({
  prices: text('name of the price list'),
  currency: text('ISO 4217'),
  lines: list(quoteLine),
  flat: decimal('for the period'),
  minimum: decimal('the least total'),
  minimum_added: decimal('what the minimum adds'),
  total: decimal('flat, the amounts of the lines and minimum_added'),
  unpriced: object(
    { units: units('that they used'), decisions: units('how many they were') },
    'decisions of routes that no line takes; they cost nothing',
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
  summary: 'What usage of a period costs by a price list, step by step',
  params: { name: text('of the price list') },
  body: closed({
    usage: list(
      closed({
        route: defaulted(
          text('as in records, such as `POST /v1/search`; absent for requests without a route', { default: '' }),
        ),
        units: quantity('that they used'),
        decisions: quantity('how many they were'),
      }),
      'the allowed decisions of one period; several rows of a route are added up',
      // A policy has fewer routes than fit into a body.
      { maxItems: 10_000 },
    ),
  }),
  answers: { 200: answer('The price, and how it came about', quote) },
  problems: [404, 503],
})

const spend = object({
  subject: text('whose'),
  draft: flag('always true: sums of a running month still change'),
  period: object({
    from: text('RFC 3339: the first instant of the month that runs now, in the subject’s own zone and with its anchor'),
    to: text('RFC 3339: the first instant of the next one'),
    time_zone: text('of the subject'),
    anchor: whole('day of the month on which its months begin'),
  }),
  ...completeness,
  quote: described(quote, 'the price of what is counted so far'),
  forecast: optional(described(quote, 'of the whole month at the mean pace so far; absent within its first day')),
})
/** What the running month of a subject costs so far. */
export type Spend = Of<typeof spend>
/** What the running month of a subject costs so far, and at this pace. */
export const getSpend = operation('GET /v1/spend', {
  tag: 'prices',
  scope: 'billing',
  reach: 'own',
  summary: 'What the running month of a subject costs so far',
  query: { subject: text('whose') },
  answers: { 200: answer('So far', spend) },
  problems: [404, 503],
})

const money = {
  currency: text('ISO 4217'),
  amount: decimal('the price of what is counted of the month'),
  previous: decimal('the price of the month before, by the price list in force'),
  change: numberOrNull('from that month to this one: 0.12 is 12% more; null from 0'),
  forecast: textOrNull(
    'decimal: of the whole month at the mean pace so far; null within its first day and once it is over',
  ),
}
const monthSpend = object({
  period: text('as asked'),
  ...completeness,
  totals: list(object(money), 'by currency'),
  rows: list(
    object({
      subject: text('whose'),
      plan: text('of the subject'),
      from: text('RFC 3339: the first instant of the month, in the zone of the subject and with its anchor'),
      to: text('RFC 3339: the first instant of the next one'),
      time_zone: text('of the subject'),
      ...money,
    }),
    'subjects with a price list, the highest amount first',
  ),
  left_out: whole('subjects beyond `top`; the totals have them'),
})
/** What a month costs every customer. */
export type MonthSpend = Of<typeof monthSpend>
/** What a month costs every customer, each in its own zone. */
export const listSpend = operation('GET /v1/spend/month', {
  tag: 'prices',
  scope: 'billing',
  summary: 'What a month costs every customer, each in its own zone, with totals by currency',
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
  id: text('UUID; of a row that comes again the same'),
  subject: text('whose'),
  hour: text('RFC 3339: first instant of the hour in which the usage was'),
  correction: flag('the hour was exported before; this comes in addition'),
  prices: text('name of the price list'),
  line: text('name of its line'),
  unit: oneOf(['units', 'decisions'], 'what the line counts'),
  quantity: text('a whole number, of a correction perhaps below 0'),
})
const usageExport = object({
  from: text('RFC 3339: first hour of the first export'),
  to: text('RFC 3339: end of the last whole hour'),
  cursor: text('`since` of the next export, and `until` of this one again'),
  ...completeness,
  unpriced: object(
    { units: text('a whole number'), decisions: text('a whole number') },
    'on this page, what no line of a price list counts',
  ),
  items: list(ratedUsage),
  next: textOrNull('`after` of the next page; null on the last. Ask for it with `until`, the cursor of this page'),
})
/** A page of rated usage. */
export type UsageExport = Of<typeof usageExport>
/** Usage of whole hours by line of the price list, for billing systems. */
export const exportUsage = operation('GET /v1/usage/export', {
  tag: 'usage',
  scope: 'billing',
  summary: 'Usage of whole hours by line of the price list, for billing systems',
  query: {
    ...pageQuery,
    from: optional(text('first hour of a first export: RFC 3339, a date, or now-24h')),
    since: optional(text('cursor of the export before')),
    until: optional(text('cursor of this export, for its next page, or for the same rows again')),
  },
  answers: { 200: answer('A page of it', usageExport) },
  problems: [422, 503, 504],
})
