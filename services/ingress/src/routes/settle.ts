import { settleBody, type settled } from '@weir/api/check.ts'
import type { Of } from '@weir/api/schema.ts'
import type { SettleAnswer, Settling } from '@weir/decide/correct/settle.ts'
import { badRequest, type Problem, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { forbidden } from './check/answer-check.ts'
import { authorizedCheck, type CallerAuthorizer, type CheckPrincipal } from './check/authorize-caller.ts'
import { bodyReader, checkRoute } from './check/check-body.ts'

const readSettleBody = bodyReader(settleBody)

/** The longest that an answer asks to wait for a process that settled and did not record; and while Redis is down. */
const retryAfterSecondsMax = 60
const unavailableRetrySeconds = 1

const ownChecksOnly = forbidden(
  'With its own credential, a subject may only settle its own checks that asked for settle. Use a token with the `check` scope for all others.',
)

const tooMuch = (settleMax: number): Problem => {
  const detail = `This credential may settle the decision at a cost of at most ${settleMax}. A token with the \`check\` scope may settle up to the route's settleMax or, if none is set, the size of the largest limit.`
  return { ...problem('settlement-too-high', 'Settlement too high', 403, detail), cost_max: settleMax }
}

const ownDecisionsOnly = forbidden('This credential may only settle decisions of its own subject.')

const unknownDecision = (id: string): Problem => {
  const detail = `This subject has no decision ${id} to settle: the decision is unknown, was made without settle, was not charged, or has expired.`
  return problem('unknown-decision', 'Unknown decision', 404, detail)
}

const otherCost = (cost: number): Problem => ({
  ...problem(
    'conflict',
    'Conflict',
    409,
    `The decision was settled to a cost of ${cost} already. A decision is settled once.`,
  ),
  settled_cost: cost,
})

const unfinished = (why: string): Problem => {
  const detail = `${why} Repeat the request; repeating it is safe.`
  return problem('settlement-unavailable', 'Settlement unavailable', 503, detail)
}

/** The subject of the decision; undefined where the credential may not name it. */
const subjectOf = (principal: CheckPrincipal, { subject }: Of<typeof settleBody>): string | undefined => {
  if (principal.kind === 'token') return subject
  return subject === undefined || subject === principal.subject.id ? principal.subject.id : undefined
}

/** `POST /v1/settle`: replaces the charge of a decision by its real cost, once. */
export function addSettleRoute(app: FastifyInstance, settling: Settling, authorizeCaller: CallerAuthorizer): void {
  app.post('/v1/settle', checkRoute(settleBody, authorizeCaller), async (request, reply) => {
    const { principal } = authorizedCheck(request)
    const read = readSettleBody(request.body)
    if ('wrong' in read) return sendProblem(reply, badRequest(read.wrong))
    const { id, cost } = read.value
    const subject = subjectOf(principal, read.value)
    if (subject === undefined) {
      return sendProblem(reply, principal.kind === 'token' ? badRequest('Give subject.') : ownDecisionsOnly)
    }
    return send(reply, id, await settling.settle({ subject, id, cost, isOwn: principal.kind === 'subject' }))
  })
}

function send(reply: FastifyReply, id: string, answer: SettleAnswer): FastifyReply {
  switch (answer.kind) {
    case 'settled': {
      const { cost, adjustment, correction = null } = answer
      const limits = answer.limits.map(({ resetMs, ...state }) => ({ ...state, reset_ms: resetMs }))
      const found: Of<typeof settled> = { id, cost, adjustment, correction, limits }
      return reply.header('cache-control', 'no-store').send(found)
    }
    case 'forbidden':
      return sendProblem(reply, ownChecksOnly)
    case 'too-much':
      return sendProblem(reply, tooMuch(answer.settleMax))
    case 'unknown':
      return sendProblem(reply, unknownDecision(id))
    case 'conflict':
      return sendProblem(reply, otherCost(answer.cost))
    case 'busy': {
      const seconds = Math.min(retryAfterSecondsMax, Math.ceil(answer.retryAfterMs / 1_000))
      return sendProblem(reply.header('retry-after', seconds), unfinished('Another process is settling this decision.'))
    }
    case 'unavailable':
      return sendProblem(reply.header('retry-after', unavailableRetrySeconds), unfinished('Redis did not answer.'))
    case 'unrecorded':
      return sendProblem(
        reply.header('retry-after', unavailableRetrySeconds),
        unfinished('The limits are corrected, but the record of it could not be written yet.'),
      )
  }
}
