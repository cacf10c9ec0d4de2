import type { Clock } from '@weir/core/clock.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { LivePolicy, PolicyView } from '../../policy-view.ts'
import { policyStale, unauthorized } from '../limits/denied-by-policy.ts'
import { limitsOf, type ReservedDecision, requestOf, reservedDecisionOf } from '../limits/limit-request.ts'
import type { DecisionRequest } from '../types.ts'

/** A request as it was put to the store, and what the store decided. */
export interface Attempt {
  /** Under the policy by which it was decided. */
  readonly ask: DecisionRequest
  readonly request: LimitRequest
  readonly reserved: ReservedDecision | undefined
  readonly decision: Decision
}

/** What a decision is made with. */
export interface Deciding {
  readonly policy: Pick<LivePolicy, 'isStale' | 'view'>
  readonly store: LimitStore
  readonly clock: Clock
}

/**
 * Decides a request that has waited as if it came now: under the policy in force, and with a date and an id of its own.
 */
export async function attemptAgain({ policy, store, clock }: Deciding, before: DecisionRequest): Promise<Attempt> {
  const renewed = policy.view === before.view ? before : await underPolicy(before, policy.view)
  const ask = renewed ?? before
  const limits = limitsOf(ask)
  const reserved = reservedDecisionOf(ask, limits, clock)
  const request = requestOf(ask, limits, reserved, clock)
  if (renewed === undefined) return { ask, request, reserved, decision: { ...unauthorized, isCached: false } }
  return { ask, request, reserved, decision: policy.isStale() ? policyStale : await store.decide(request) }
}

/** The same request under another policy; undefined if that policy does not know its caller any more. */
async function underPolicy(ask: DecisionRequest, view: PolicyView): Promise<DecisionRequest | undefined> {
  if (ask.reauthenticate === undefined) return ask
  const caller = await ask.reauthenticate(view)
  if (caller === undefined || caller.subject.id !== ask.subject.id) return undefined
  const route = view.policy.routes.find(({ template }) => template === ask.route.template) ?? unmatchedRoute
  return { ...ask, view, subject: caller.subject, keyId: caller.keyId, route }
}
