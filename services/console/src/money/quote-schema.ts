import { object, text } from '../http/schemas.ts'

const integer = (description: string) => ({ type: 'integer', description })
const decimal = (description: string) => text(`decimal: ${description}`)

const tier = object(
  {
    up_to: integer('the last unit of the tier, counted after the included ones; absent in the last tier'),
    quantity: integer('units in it'),
    packages: integer('packages in it, of a line with `per`'),
    unit_amount: decimal('of a unit, or of a package'),
    flat_amount: decimal('added once'),
    amount: decimal('quantity (or packages) × unit_amount + flat_amount, exactly'),
  },
  ['up_to', 'packages'],
)

const line = object(
  {
    name: text('of the line'),
    measure: text('units or decisions'),
    mode: text('graduated or volume'),
    per: integer('units of a package; absent without packages'),
    round: text('up or down: how a part of a package is counted'),
    quantity: integer('what was used'),
    included: integer('what costs nothing'),
    billable: integer('the quantity beyond that'),
    tiers: { type: 'array', description: 'the tiers that were reached', items: tier },
    exact: decimal('the sum of the tiers, exactly'),
    amount: decimal('that, rounded once, half away from zero, to the smallest unit of the currency'),
  },
  ['per', 'round'],
)

/** The schema of a quote: the price of a period and how it came about. */
export const quoteAnswer = object({
  prices: text('name of the price list'),
  currency: text('ISO 4217'),
  lines: { type: 'array', items: line },
  flat: decimal('for the period'),
  minimum: decimal('the least total'),
  minimum_added: decimal('what the minimum adds'),
  total: decimal('flat, the amounts of the lines and minimum_added'),
  unpriced: {
    ...object({ units: integer('that they used'), decisions: integer('how many they were') }),
    description: 'decisions of routes that no line takes; they cost nothing',
  },
})
