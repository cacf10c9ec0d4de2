import { holdBody, type renewed, settleBody, type settled } from '@weir/api/check.ts'
import type { Of } from '@weir/api/schema.ts'
import type { RenewResult, Settlement } from '@weir/core/limits/settlement.ts'
import type { SettleAnswer, Settling } from '@weir/decide/correct/settle.ts'
import type { DecisionView } from '@weir/decide/decision-view.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { badRequest, type Problem, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { isProblem } from '../http/decision-reply.ts'
import type { LivePolicy } from '../policy-view.ts'
import { forbidden } from './check/answer-check.ts'
import { authorizedCheck, type CallerAuthorizer, type CheckPrincipal } from './check/authorize-caller.ts'
import { bodyReader, checkRoute, unitsProblem } from './check/check-body.ts'

const [readSettleBody, readHoldBody] = [bodyReader(settleBody), bodyReader(holdBody)]

/** The longest that an answer asks to wait for a process that settled and did not record; and while Redis is down. */
const retryAfterSecondsMax = 60
const unavailableRetrySeconds = 1

const ownChecksOnly = forbidden(
  'With its own credential, a subject may only settle its own checks that asked for settle. Use a token with the `check` scope for all others.',
)

const tooMuch = ({ settleMax, unit }: Extract<SettleAnswer, { readonly kind: 'too-much' }>): Problem => {
  const what = unit === undefined ? `a cost of at most ${settleMax}` : `at most ${settleMax} ${unit}`
  const detail = `This credential may settle the decision at ${what}. A token with the \`check\` scope may settle up to the route's settleMax or, if none is set, the size of the largest limit.`
  return { ...problem('settlement-too-high', 'Settlement too high', 403, detail), cost_max: settleMax }
}

const ownDecisionsOnly = forbidden('This credential may only settle decisions of its own subject.')

const unknownDecision = (id: string): Problem => {
  const detail = `This subject has no decision ${id} to settle: the decision is unknown, was made without settle, was not charged, or has expired.`
  return problem('unknown-decision', 'Unknown decision', 404, detail)
}

function otherCost({ cost, units }: Extract<SettleAnswer, { readonly kind: 'conflict' }>): Problem {
  const quantities = Object.entries(units ?? {}).map(([unit, quantity]) => `, ${quantity} ${unit}`)
  const detail = `The decision was settled to a cost of ${cost}${quantities.join('')} already. A decision is settled once.`
  return { ...problem('conflict', 'Conflict', 409, detail), settled_cost: cost, ...(units && { settled_units: units }) }
}

const tooMany = problem(
  'too-many-open',
  'Too many open decisions',
  429,
  'The subject has too many open decisions to keep this one open for longer. It can still be settled.',
)

const unfinished = (why: string): Problem => {
  const detail = `${why} Repeat the request; repeating it is safe.`
  return problem('settlement-unavailable', 'Settlement unavailable', 503, detail)
}

/** What a caller may settle; a problem where its credential may not, or it names nobody. */
export function settlementOf(
  principal: CheckPrincipal,
  { policy }: DecisionView,
  { subject, id }: Of<typeof holdBody>,
): Settlement | Problem {
  const isOwn = principal.kind === 'subject'
  if (!isOwn && subject === undefined) return badRequest('Give subject.')
  if (isOwn && subject !== undefined && subject !== principal.subject.id) return ownDecisionsOnly
  const name = isOwn ? principal.subject.id : (subject ?? '')
  const own = isOwn ? principal.subject : policy.subjects.get(name)
  return { subject: name, root: own && ancestorsOf(own).at(-1)?.id, id, isOwn }
}

/**
 * `POST /v1/settle` replaces what a decision was charged, or holds, by what it really used, once; `POST /v1/release` by
 * nothing; `POST /v1/renew` keeps it held.
 */
export function addSettleRoutes(
  app: FastifyInstance,
  settling: Settling,
  authorizeCaller: CallerAuthorizer,
  policy: Pick<LivePolicy, 'view'>,
): void {
  const add = <Body extends typeof settleBody | typeof holdBody>(
    path: string,
    body: Body,
    read: ReturnType<typeof bodyReader<Body>>,
    answer: (settlement: Settlement, body: Of<Body>) => Promise<SettleAnswer | RenewResult>,
  ) =>
    app.post(path, checkRoute(body, authorizeCaller), async (request, reply) => {
      const { principal, view } = authorizedCheck(request)
      const found = read(request.body)
      if ('wrong' in found) return sendProblem(reply, badRequest(found.wrong))
      const { id } = found.value
      const wrongUnits = 'units' in found.value ? unitsProblem(view.policy, found.value.units) : undefined
      if (wrongUnits !== undefined) return sendProblem(reply, wrongUnits)
      const settlement = settlementOf(principal, policy.view, found.value)
      if (isProblem(settlement)) return sendProblem(reply, settlement)
      return send(reply, id, shownTo(principal, await answer(settlement, found.value)))
    })
  add('/v1/settle', settleBody, readSettleBody, (settlement, { cost, units }) =>
    settling.settle({ ...settlement, cost, units: units && new Map(Object.entries(units)) }),
  )
  add('/v1/release', holdBody, readHoldBody, (settlement) => settling.settle({ ...settlement, isUnused: true }))
  add('/v1/renew', holdBody, readHoldBody, (settlement) => settling.renew(settlement))
}

/** What an ancestor has left is not a member's to know. */
const shownTo = ({ kind }: CheckPrincipal, answer: SettleAnswer | RenewResult) =>
  kind === 'subject' && answer.kind === 'settled'
    ? { ...answer, limits: answer.limits.filter(({ at }) => at === undefined) }
    : answer

function send(reply: FastifyReply, id: string, answer: SettleAnswer | RenewResult): FastifyReply {
  if (answer.kind === 'renewed') {
    const found: Of<typeof renewed> = { id, open_ms: answer.openMs }
    return reply.header('cache-control', 'no-store').send(found)
  }
  if (answer.kind === 'settled') {
    const { cost, units, adjustment, correction = null } = answer
    const limits = answer.limits.map(({ resetMs, at, ...state }) => ({
      ...state,
      reset_ms: resetMs,
      ...(at && { at }),
    }))
    const found: Of<typeof settled> = { id, cost, ...(units && { units }), adjustment, correction, limits }
    return reply.header('cache-control', 'no-store').send(found)
  }
  const { found, retrySeconds } = settleProblem(id, answer)
  return sendProblem(retrySeconds === undefined ? reply : reply.header('retry-after', retrySeconds), found)
}

/** Why a decision was not settled or renewed, and when to try again. */
export function settleProblem(
  id: string,
  answer: Exclude<SettleAnswer | RenewResult, { readonly kind: 'settled' | 'renewed' }>,
): { readonly found: Problem; readonly retrySeconds?: number } {
  switch (answer.kind) {
    case 'too-many':
      return { found: tooMany, retrySeconds: retryAfterSecondsMax }
    case 'forbidden':
      return { found: ownChecksOnly }
    case 'too-much':
      return { found: tooMuch(answer) }
    case 'unknown':
      return { found: unknownDecision(id) }
    case 'conflict':
      return { found: otherCost(answer) }
    case 'busy': {
      const seconds = Math.min(retryAfterSecondsMax, Math.ceil(answer.retryAfterMs / 1_000))
      return { found: unfinished('Another process is settling this decision.'), retrySeconds: seconds }
    }
    case 'unavailable':
      return { found: unfinished('Redis did not answer.'), retrySeconds: unavailableRetrySeconds }
    case 'unrecorded': {
      const why = 'The limits are corrected, but the record of it could not be written yet.'
      return { found: unfinished(why), retrySeconds: unavailableRetrySeconds }
    }
  }
}
