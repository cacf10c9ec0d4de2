import { quote } from '@weir/core/prices/quote.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnread } from '../http/problems.ts'
import { answer, closed, object, operation, problems, text } from '../http/schemas.ts'
import { noEntity } from '../policy/entities.ts'
import type { Ports } from '../ports.ts'
import { quoteAnswer } from './quote-schema.ts'

/** A question has a row for each route at most; a policy has fewer routes than that fit into a body. */
const usageRowsMax = 10_000

const quantity = (description: string) => ({
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 0,
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
