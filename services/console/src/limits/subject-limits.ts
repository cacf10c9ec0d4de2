import { getLimits } from '@weir/api/limits.ts'
import { type TokenBucketState, tokenBucket } from '@weir/core/algorithms/token-bucket.ts'
import { partText } from '@weir/core/limits/limit.ts'
import { becauseOf } from '@weir/policy/match/resolve-limits.ts'
import type { Subject } from '@weir/policy/policy.ts'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { subjectForbidden } from '../http/authorize.ts'
import { answerProblem, tooManyQuestions, unknownName } from '../http/problems.ts'
import { serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { noRedis, redisProblem } from './count-change.ts'
import { shownLimit, standingOf } from './current-state.ts'
import { findLimits } from './limit-changes.ts'

/** Whether the policy has this key, and it is the subject's. */
function isKeyOf({ policy: { state } }: Sources, keyId: string, subject: string): boolean {
  const sha256 = state?.keyOfId(keyId)
  return sha256 !== undefined && state?.keysOf(subject).includes(sha256) === true
}

const tooFast = tooManyQuestions('Customers can read their limits 10 times a second, with bursts of up to 20.')

/** Counts of a customer are looked up in the Redis that decides requests. A page asks again every few seconds. */
const ownRate = { size: 10, capacity: 20, span: { kind: 'window', ms: 1_000 }, boundaries: undefined } as const
/** About 200 bytes each. The least recent are evicted, and begin with a full bucket. */
const askersMax = 10_000

/** Returns the wait until a customer may ask again, after which this question counts if it is 0. */
export function createRate(nowMs: () => number, rate: Parameters<typeof tokenBucket.plan>[1]): (by: string) => number {
  const buckets = new LRUCache<string, TokenBucketState>({ max: askersMax })
  return (by) => {
    const { waitMs, next } = tokenBucket.plan(buckets.get(by), rate, 1, nowMs() * 1_000)
    if (next !== undefined) buckets.set(by, next)
    return waitMs
  }
}

type Found = Awaited<ReturnType<typeof standingOf>>['limits'][number]

function shown({ explained, now }: Found, subject: Subject) {
  const { algorithm, mode, capacity, span, by, title = null, about = null, currency = null } = explained.limit
  const { resetMs, blockedMs } = now
  return {
    ...shownLimit(now),
    title,
    about,
    because: becauseOf(explained, subject),
    algorithm,
    mode,
    capacity,
    currency,
    by: by.map(partText),
    window_ms: span.kind === 'window' ? span.ms : null,
    period: span.kind === 'period' ? span.unit : null,
    reset_ms: now.used === null ? null : resetMs,
    blocked_ms: blockedMs,
  }
}

/** `GET /v1/subjects/{id}/limits`: how much is left of each, and when it comes back. Looks at no other count. */
export function registerSubjectLimits(app: FastifyInstance, sources: Sources): void {
  const waitMs = createRate(() => sources.clock.nowMs(), ownRate)
  serve(app, getLimits, async (request, reply) => {
    const { id } = request.params
    const { reach, log } = request
    const { key_id: keyId, cost: given, ...rest } = request.query
    // First, and whether there is such a subject or not. What is counted by address is not of one subject.
    if (!reach.coversNow([id])) return answerProblem(reply, subjectForbidden(request))
    // Costs one after the other would find out how much is left of a count that others share.
    const asksOfOthers = rest.ip !== undefined || given !== undefined
    if (reach.isOwn && asksOfOthers) return answerProblem(reply, subjectForbidden(request))
    if (reach.isOwn && waitMs(request.by) > 0) return answerProblem(reply, tooFast)
    const own = { isOwn: reach.isOwn, ...(keyId === undefined ? {} : { keyId }) }
    const found = findLimits(sources, { subject: id, ...rest, ...own })
    if (found.kind === 'problem') return answerProblem(reply, found.problem)
    const { asked } = found
    if (keyId !== undefined && !isKeyOf(sources, keyId, id))
      return answerProblem(reply, unknownName(`key of ${id}`, keyId))
    if (sources.limits?.peek === undefined) return answerProblem(reply, noRedis)
    const cost = given ?? asked.route?.cost ?? 1
    try {
      const { limits, ...standing } = await standingOf(sources.limits?.peek, { asked, cost }, reach)
      const { plan, timeZone, anchor } = asked.subject
      reply.header('cache-control', 'no-store')
      return {
        subject: id,
        plan: plan.name,
        plan_title: plan.title ?? null,
        plan_about: plan.about ?? null,
        time_zone: timeZone,
        anchor,
        route: asked.route?.template ?? null,
        cost,
        ...standing,
        limits: limits.map((one) => shown(one, asked.subject)),
      }
    } catch (error) {
      return answerProblem(reply, redisProblem(error, log, 'Redis did not respond. Nothing was changed; try again.'))
    }
  })
}
