import { quoteUsage } from '@weir/api/money.ts'
import { quote } from '@weir/core/prices/quote.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem } from '../http/problems.ts'
import { servePolicy } from '../http/serve.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'

/** `POST /v1/prices/{name}/quote`: what usage would cost by a price list, and why. It changes and stores nothing. */
export function registerPrices(app: FastifyInstance, sources: Sources): void {
  servePolicy(app, sources, quoteUsage, async (state, { params: { name }, body: { usage } }, reply) => {
    const prices = state.policy.prices.get(name)
    if (prices === undefined) return answerProblem(reply, noEntity(state, 'price', name))
    const rows = usage.map(({ route, units, decisions }) => {
      return { route, units: BigInt(units), decisions: BigInt(decisions) }
    })
    return quote(prices, rows)
  })
}
