import { quote } from '@weir/core/prices/quote.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnread } from '../http/problems.ts'
import { answer, closed, object, operation, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { noEntity } from './entities.ts'

/** A question has a row for each route at most; a policy has fewer routes than that fit into a body. */
const usageRowsMax = 10_000

const quantity = (description: string) => ({
  ...{ type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 },
  description,
})

const body = closed(
  {
    usage: {
      type: 'array',
      maxItems: usageRowsMax,
      description: 'the allowed decisions of one period; several rows of a route are added up',
      items: closed({
        route: {
          ...text('as in records, such as `POST /v1/search`; absent for requests without a route'),
          default: '',
        },
        units: quantity('that they used'),
        decisions: quantity('how many they were'),
      }),
    },
  },
  ['usage'],
)

const integer = (description: string) => ({ type: 'integer', description })
const decimal = (description: string) => text(`decimal: ${description}`)

const tier = object(
  {
    up_to: integer('the last unit of the tier, counted after the included ones; absent in the last tier'),
    quantity: integer('units in it'),
    unit_amount: decimal('of a unit'),
    flat_amount: decimal('added once'),
    amount: decimal('quantity × unit_amount + flat_amount, exactly'),
  },
  ['up_to'],
)

const line = object({
  name: text('of the line'),
  measure: text('units or decisions'),
  mode: text('graduated or volume'),
  quantity: integer('what was used'),
  included: integer('what costs nothing'),
  billable: integer('the quantity beyond that'),
  tiers: { type: 'array', description: 'the tiers that were reached', items: tier },
  exact: decimal('the sum of the tiers, exactly'),
  amount: decimal('that, rounded once, half away from zero, to the smallest unit of the currency'),
})

/** The price of a period and how it came about. */
const quoteAnswer = object({
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

interface Quote {
  readonly Params: { readonly name: string }
  readonly Body: {
    readonly usage: readonly { readonly route: string; readonly units: number; readonly decisions: number }[]
  }
}

/** `POST /v1/prices/{name}/quote`: what usage would cost by a price list, and why. It changes and stores nothing. */
export function registerPrices(app: FastifyInstance, ports: Ports): void {
  app.post<Quote>(
    '/v1/prices/:name/quote',
    operation('billing', 'prices', 'What usage of a period costs by a price list, step by step', {
      params: object({ name: text('of the price list') }),
      body,
      response: { 200: answer('The price, and how it came about', quoteAnswer), ...problems(404, 503) },
    }),
    async ({ params: { name }, body: { usage } }, reply) => {
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const prices = state.policy.prices.get(name)
      if (prices === undefined) return answerProblem(reply, noEntity(state, 'price', name))
      const rows = usage.map(({ route, units, decisions }) => {
        return { route, units: BigInt(units), decisions: BigInt(decisions) }
      })
      return quote(prices, rows)
    },
  )
}
