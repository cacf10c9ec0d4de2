import { getSpend } from '@weir/api/money.ts'
import { forecastUsage } from '@weir/core/prices/forecast.ts'
import { iso, monthAt } from '@weir/core/prices/priced-month.ts'
import { quote } from '@weir/core/prices/quote.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { answerProblem, policyUnread, retired, unknown, unknownName, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'
import { shownCompleteness } from '../usage/completeness.ts'

const unanswered = {
  what: 'month costs could not be read',
  problem: usageUnavailable('ClickHouse did not respond. Try again later.'),
}

/** Routes of closed invoices, which releases before 0.11 had, and what to use instead. */
const retiredRoutes = {
  '/v1/invoices/preview': 'GET /v1/spend returns the cost of the current month.',
  '/v1/invoices': 'GET /v1/usage/export has what to invoice; the table weir.invoices has what was closed.',
  '/v1/invoices/*': 'GET /v1/usage/export has what to invoice; the table weir.invoices has what was closed.',
}

/** `GET /v1/spend`: what the running month of a subject costs so far, and at this pace. */
export function registerSpend(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, getSpend, unanswered, async (request, reply) => {
    const { subject: id } = request.query
    const { reach } = request
    if (!reach.covers([id])) return answerProblem(reply, subjectForbidden(request))
    const { state } = sources.policy
    if (state === undefined) return answerProblem(reply, policyUnread)
    const subject = state.policy.subjects.get(id)
    // Names that are near would be others'.
    if (subject === undefined && reach.isOwn) return answerProblem(reply, unknownName('subject', id))
    if (subject === undefined) return answerProblem(reply, noEntity(state, 'subject', id))
    const prices = pricesOf(state.policy, subject)
    if (prices === undefined) return answerProblem(reply, unknown(unpriced(id, subject.plan.name)))
    const { timeZone, anchor } = subject
    const nowMs = sources.clock.nowMs()
    const { fromMs, toMs } = monthAt(subject, nowMs)
    // First: what comes in between the two is then more than was claimed, and never less.
    const completeness = await sources.usage.askCompleteness('decisions')
    const used = await sources.money.askPeriodUsage(reach, id, { fromMs, toMs })
    const forecast = forecastUsage(used, { fromMs, toMs }, Math.min(nowMs, completeness.completeThroughMs ?? nowMs))
    return {
      subject: id,
      draft: true,
      period: { from: iso(fromMs), to: iso(toMs), time_zone: timeZone, anchor },
      ...shownCompleteness(completeness, reach),
      quote: quote(prices, used),
      ...(forecast === undefined ? {} : { forecast: quote(prices, forecast) }),
    }
  })
  for (const [url, instead] of Object.entries(retiredRoutes)) {
    const options = { schema: { hide: true }, config: { scope: 'billing', reach: 'own' } } as const
    app.all(url, options, (_, reply) => answerProblem(reply, retired(`Weir closes no invoices. ${instead}`)))
  }
}

const unpriced = (subject: string, plan: string) =>
  `The subject ${subject} has no price list: neither it nor its plan ${plan} names one`
