import { pauseBody, type paused } from '@weir/api/check.ts'
import type { Of } from '@weir/api/schema.ts'
import { pauseMsMax } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { didYouMean } from '@weir/core/suggest.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { explainLimits } from '@weir/policy/match/resolve-limits.ts'
import type { Subject } from '@weir/policy/policy.ts'
import { parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { isProblem } from '../http/decision-reply.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import { checkedSubject } from './check/answer-check.ts'
import { authorizedCheck, type CallerAuthorizer } from './check/authorize-caller.ts'
import { bodyReader, checkRoute } from './check/check-body.ts'

const readPauseBody = bodyReader(pauseBody)

/** The longest that a foreign API asks its callers to wait; a longer pause needs a token. */
const ownPauseMsMax = 3_600_000

/** Callers try again after this while Redis is down. */
const unavailableRetrySeconds = 1

const unavailable = problem(
  'limits-unavailable',
  'Limits unavailable',
  503,
  'Redis did not respond, or rejected the call (see the log). The limit may or may not be paused. Try again; repeating the request is safe.',
)

/** `POST /v1/pause`: for a caller that a foreign API asked to wait, for example by a 429. */
export function addPauseRoute(
  app: FastifyInstance,
  ports: Pick<Ports, 'pauses' | 'clock'>,
  authorizeCaller: CallerAuthorizer,
): void {
  app.post('/v1/pause', checkRoute(pauseBody, authorizeCaller), async (request, reply) => {
    const { view, principal } = authorizedCheck(request)
    const read = readPauseBody(request.body)
    if ('wrong' in read) return sendProblem(reply, badRequest(read.wrong))
    const body = read.value
    const ms = parseDurationMs(body.for)
    if (ms === undefined || ms > pauseMsMax)
      return sendProblem(reply, badRequest('for must be a duration of at most 31d, such as 30s.'))
    const who = checkedSubject(view, principal, body, ports.clock.nowMs())
    if (who === 'unauthenticated') return sendProblem(reply, badRequest('key is not a valid key.'))
    if (isProblem(who)) return sendProblem(reply, who)
    const { subject, keyId } = who
    if (principal.kind === 'subject' && ms > ownPauseMsMax)
      return sendProblem(reply, badRequest('A subject may pause its own limits for at most 1h.'))
    const limit = findLimit(view, subject, body.limit)
    if (!('wrong' in limit) && keyId === '' && limit.by.some(({ kind }) => kind === 'key'))
      return sendProblem(reply, badRequest(`The limit ${limit.name} counts per key: send key instead of subject.`))
    if ('wrong' in limit) return sendProblem(reply, badRequest(limit.wrong))
    const scope = {
      subject: subject.id,
      keyId,
      ip: '',
      route: '',
      method: '',
      above: subject.parent && ancestorsOf(subject),
    }
    const leftMs = await ports.pauses?.pause(limit, scope, ms)
    request.log.info({ subject: subject.id, limit: limit.name, ms, paused: leftMs !== undefined }, 'pause')
    if (leftMs === undefined) return sendProblem(reply.header('retry-after', unavailableRetrySeconds), unavailable)
    const found: Of<typeof paused> = { limit: limit.name, retry_after_ms: leftMs }
    return reply.header('cache-control', 'no-store').send(found)
  })
}

/** The subject's version of a limit that listens to pauses and counts by nothing that is not said here. */
function findLimit({ policy }: PolicyView, subject: Subject, name: string): Limit | { readonly wrong: string } {
  const limit = subject.ownLimits.get(name) ?? policy.limits.get(name)
  if (limit === undefined) {
    return { wrong: `The policy has no limit ${JSON.stringify(name)}${didYouMean(name, policy.limits.keys())}.` }
  }
  if (limit.onExceed.kind !== 'delay')
    return { wrong: `The limit ${name} has no \`onExceed: delay\`, so it cannot be paused.` }
  const isSaid = limit.by.every(({ kind }) => kind === 'subject' || kind === 'key')
  if (!isSaid)
    return {
      wrong: `The limit ${name} cannot be paused: only limits that count by subject alone or by key alone can be.`,
    }
  if (explainLimits(policy, subject, undefined).every((one) => one.limit.name !== name || one.at !== undefined)) {
    return { wrong: `The limit ${name} does not apply to ${subject.id}.` }
  }
  return limit
}
