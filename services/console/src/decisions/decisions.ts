import { decisionIdPattern, explainDecision } from '@weir/api/decisions.ts'
import { policyOf } from '@weir/explain/policy-facts.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, badDecisionId, decisionsUnavailable, unknownDecision } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import { standsNow } from '../limits/current-state.ts'
import type { Sources } from '../sources.ts'
import { explained, hiddenIn } from './explain.ts'

const isId = new RegExp(decisionIdPattern)

/** What an id in lower case says of its time; undefined for what is no UUID of version 7. */
export const timeInId = (id: string): number | undefined =>
  isId.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined

const unanswered = { what: 'a decision could not be explained', problem: decisionsUnavailable(askAgain) }

/** Metering is seldom further behind than this. */
const notMeteredRetryS = 2

/** `GET /v1/decisions/{id}`: why a request was allowed or refused, and what would have admitted it. */
export function registerDecisions(app: FastifyInstance, sources: Sources): void {
  const { decisions, policy: replica } = sources
  serveQuestion(app, explainDecision, unanswered, async (request, reply) => {
    const id = request.params.id.toLowerCase()
    const idMs = timeInId(id)
    if (idMs === undefined) return answerProblem(reply, badDecisionId)
    const { reach } = request
    // First: what comes in between is then found, or known not to be metered yet.
    const { completeThroughMs = 0 } = await sources.usage.askCompleteness('decisions')
    const row = await decisions.find(reach, { id, idMs })
    if (row === undefined) {
      const isMetered = idMs < completeThroughMs
      if (!isMetered) reply.header('retry-after', notMeteredRetryS)
      return answerProblem(reply, unknownDecision(isMetered))
    }
    const subjects = [row.subject, ...row.parents]
    const then = await decisions.policyAt({ offset: row.policy, tsMs: row.ts_ms, subjects })
    const now = replica.state
    const policyThen = then === undefined || !reach.isOwn ? undefined : policyOf(then)
    const related = await decisions.related({ reach, hiddenLimits: hiddenIn(policyThen, now?.policy, reach) }, row)
    const stands = await standsNow({ policy: now?.policy, peekLimits: sources.limits?.peek }, row, reach).catch(
      (error: unknown) => {
        request.log.warn({ err: error }, 'current state of limits unavailable')
        return null
      },
    )
    return { ...explained({ row, related, then, now }, reach), now: stands }
  })
}
