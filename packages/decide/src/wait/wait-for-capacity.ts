import type { ServerResponse } from 'node:http'
import type { Clock } from '@weir/core/clock.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { type Decision, deniedByLimit } from '@weir/core/limits/decision.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import { isOfOneSubject, type Limit, longestPeriodMs } from '@weir/core/limits/limit.ts'
import {
  costOf,
  countedSubject,
  type LimitRequest,
  type LimitStore,
  type ScopeValues,
  scopeValue,
} from '@weir/core/limits/limit-store.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { DecisionView, LiveView } from '../decision-view.ts'
import { byHand, policyStale, unauthorized } from '../limits/denied-by-policy.ts'
import type { ExceededCounts } from '../limits/exceeded.ts'
import { limitsOf, type ReservedDecision, requestOf, reservedDecisionOf } from '../limits/limit-request.ts'
import type { DecisionRequest } from '../types.ts'
import type { CapacityForecast, QueueTicket } from './delay-queue.ts'
import type { DelayQueues } from './delay-queues.ts'
import { isGone, watchClient } from './waiting-client.ts'

/** What a decision is made with. */
export interface Deciding {
  readonly policy: LiveView
  readonly store: LimitStore
  readonly clock: Clock
}

/** A request as it was put to the store, and what the store decided. */
export interface Attempt {
  /** Under the policy by which it was decided. */
  readonly ask: DecisionRequest
  readonly request: LimitRequest
  readonly reserved: ReservedDecision | undefined
  readonly decision: Decision
}

/** Without a decision where others wait before the request, so that the store was not asked. */
type Undecided = Omit<Attempt, 'decision'> & { readonly decision?: Decision | undefined }

/** When a slot is given back is not known, unless by this process: then it is looked for this often. */
const slotEveryMs = 250

/** Requests that wait for what was given back here are granted now. */
export function expectCapacity(queues: DelayQueues, { limits, scope }: LimitRequest): void {
  if (queues.busyKeys > 0) for (const limit of limits) queues.expect(countKey(limit, scope))
}

/** For limits whose policy says nothing of a queue. */
const queueMaxDefault = 100

/** What a limit counts under: requests with equal keys wait in one queue. */
function countKey(limit: Limit, scope: ScopeValues): string {
  const subject = isOfOneSubject(limit.by) ? countedSubject(limit, scope) : ''
  let key = `${limit.name} ${subject.length} ${subject}`
  for (const part of limit.by) {
    const value = scopeValue(part, scope, limit.override)
    key += ` ${value.length} ${value}`
  }
  return key
}

const isWaitedFor = (limit: Limit, waitMs: number | undefined) =>
  refuses(limit) && (waitMs !== undefined || limit.onExceed.kind === 'delay')

const refusingOf = ({ exceededMask }: Decision, limits: readonly Limit[]) =>
  limits.filter((limit, at) => (exceededMask & (1 << at)) !== 0 && refuses(limit))

/**
 * The limit that the refused request waits for: the first that refused it, if that and all others that did may be
 * waited for. A request that may have been charged does not wait: what it was charged
 * is not known.
 */
export function limitToWaitFor(
  decision: Decision,
  limits: readonly Limit[],
  waitMs: number | undefined,
): Limit | undefined {
  const { allowed, reason, charged, deniedBy } = decision
  if (allowed || charged === 'unknown' || (reason !== 'limit' && reason !== 'blocked')) return undefined
  const limit = limits.find(({ name }) => name === deniedBy)
  if (limit === undefined || !isWaitedFor(limit, waitMs)) return undefined
  return refusingOf(decision, limits).every((one) => isWaitedFor(one, waitMs)) ? limit : undefined
}

/**
 * The limit that other requests wait for already: a request that comes now has to come after them. A repeat under an
 * idempotency key was admitted before, so it overtakes none of them. A request that costs nothing needs no capacity,
 * and one that costs too much would wait in vain.
 */
export function limitWaitedFor(
  queues: DelayQueues,
  { client, peek, idempotencyKey, cost, units, waitMs }: DecisionRequest,
  { limits, scope }: LimitRequest,
): Limit | undefined {
  if (client === undefined || peek || idempotencyKey !== undefined || cost === 0) return undefined
  return limits.find(
    (limit) =>
      costOf(limit, { cost, units }) <= limit.capacity &&
      isWaitedFor(limit, waitMs) &&
      queues.has(countKey(limit, scope)),
  )
}

/**
 * Lets a request wait for capacity in a limit, and then in the one that refuses it next, until it is decided otherwise,
 * its time is over, or its client has left. In the last two cases it gets the refusal that it would have got.
 */
export async function waitForCapacity(
  queues: DelayQueues,
  deciding: Deciding,
  first: Undecided,
  firstLimit: Limit,
  client: ServerResponse,
  counts: Pick<ExceededCounts, 'delay'>,
): Promise<Attempt> {
  const { waitMs } = first.ask
  let last = first
  let lastMs = performance.now()
  let limit = firstLimit
  let key = countKey(limit, last.request.scope)
  let forecast = forecastAfter(last, limit)
  const deadlineMs = lastMs + (waitMs ?? (limit.onExceed.kind === 'delay' ? limit.onExceed.delayMs : 0))
  const enqueue = (): QueueTicket | undefined => {
    const { onExceed } = limit
    if (isGone(client)) return undefined
    const { subject } = last.request.scope
    const queueMax = onExceed.kind === 'delay' ? onExceed.queueMax : queueMaxDefault
    return queues.enqueue(key, { ...forecast, subject, deadlineMs, queueMax, pacingMs: pacingOf(limit, last.request) })
  }
  const refused = () => refusalNow(last, limit, queues.waitMs(key), performance.now() - lastMs)
  let ticket = enqueue()
  if (ticket !== undefined) counts.delay += 1
  while (ticket !== undefined) {
    const queueKey = key
    const unwatch = watchClient(client, ticket.cancel)
    try {
      do {
        // It may have left while it was decided, and may leave while it waits.
        if (isGone(client) || !(await ticket.wait()) || isGone(client)) return refused()
        const attempt = await attemptAgain(deciding, first.ask)
        last = attempt
        lastMs = performance.now()
        const next = limitToWaitFor(attempt.decision, attempt.request.limits, waitMs)
        if (next === undefined) {
          ticket.release(attempt.decision.charged === 'yes')
          return attempt
        }
        limit = next
        key = countKey(limit, last.request.scope)
        forecast = forecastAfter(attempt, limit)
        // A client that left while it was decided on is waited for no more: those behind it do not get its forecast.
      } while (key === queueKey && !isGone(client) && ticket.requeue(forecast))
    } finally {
      ticket.release(false)
      unwatch()
    }
    ticket = enqueue()
  }
  const { decision } = last
  return decision === undefined ? refused() : { ...last, decision }
}

/**
 * Decides a request that has waited as if it came now: under the policy in force, and with a date and an id of its own.
 */
async function attemptAgain({ policy, store, clock }: Deciding, before: DecisionRequest): Promise<Attempt> {
  const renewed = policy.view === before.view ? before : await underPolicy(before, policy.view)
  const ask = renewed ?? before
  const said = byHand(ask, clock)
  const limits = limitsOf(ask)
  const reserved = reservedDecisionOf(ask, limits, clock)
  const request = requestOf(ask, limits, reserved, clock)
  if (renewed === undefined) return { ask, request, reserved, decision: { ...unauthorized, isCached: false } }
  if (typeof said === 'object') return { ask, request, reserved, decision: said }
  return { ask, request, reserved, decision: policy.isStale() ? policyStale : await store.decide(request) }
}

/** The same request under another policy; undefined if that policy does not know its caller any more. */
async function underPolicy(ask: DecisionRequest, view: DecisionView): Promise<DecisionRequest | undefined> {
  if (ask.reauthenticate === undefined) return ask
  const caller = await ask.reauthenticate(view)
  if (caller === undefined || caller.subject.id !== ask.subject.id) return undefined
  const route = view.policy.routes.find(({ template }) => template === ask.route.template) ?? unmatchedRoute
  return { ...ask, view, subject: caller.subject, keyId: caller.keyId, route }
}

/** The time in which a limit admits as much as the request costs. */
function pacingOf(limit: Limit, request: LimitRequest): number {
  if (countsInFlight(limit)) return slotEveryMs
  const { span, size } = limit
  const spanMs = span.kind === 'window' ? span.ms : longestPeriodMs[span.unit]
  return (costOf(limit, request) * spanMs) / Math.max(1, size)
}

/**
 * When the limit has capacity. A refusal says how long the slowest of all refusing limits takes: if there are others,
 * all that is known of this one is that it admits one request in one pace.
 */
function forecastAfter({ request, decision }: Undecided, limit: Limit): CapacityForecast {
  const toldMs = decision?.retryAfterMs ?? 0
  const retryMs = countsInFlight(limit) ? Math.min(toldMs, slotEveryMs) : toldMs
  const isAlone = decision === undefined || refusingOf(decision, request.limits).every((one) => one === limit)
  return { retryMs, capacityMs: isAlone ? retryMs : Math.min(retryMs, pacingOf(limit, request)) }
}

/** The last refusal, as it stands by now; or one for a request that waited behind others alone. */
function refusalNow({ decision, ...attempt }: Undecided, limit: Limit, queueMs: number, elapsedMs: number): Attempt {
  const aheadMs = Math.max(1, queueMs)
  if (decision === undefined) {
    // Others wait for all the capacity of this limit.
    const retryAfterMs = Math.ceil(aheadMs)
    const state = { used: limit.capacity, resetMs: retryAfterMs, retryAfterMs }
    return { ...attempt, decision: deniedByLimit('limit', limit, attempt.request, state) }
  }
  const retryAfterMs = Math.ceil(Math.max(aheadMs, decision.retryAfterMs - elapsedMs))
  const limits = decision.limits.map((state) => ({
    ...state,
    resetMs: Math.max(0, Math.ceil(state.resetMs - elapsedMs)),
  }))
  return { ...attempt, decision: { ...decision, retryAfterMs, limits } }
}
