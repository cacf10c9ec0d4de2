import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { DecisionView } from '../decision-view.ts'
import type { DecisionRequest } from '../types.ts'

/** A request of cost 1 of a subject that the policy has; a test states only what matters to it. */
export function buildDecisionRequest(
  view: DecisionView,
  id: string,
  given: Partial<DecisionRequest> = {},
): DecisionRequest {
  const subject = view.policy.subjects.get(id)
  if (subject === undefined) throw new Error(`no subject ${id}`)
  return {
    entryPoint: 'check',
    startedAt: 0,
    view,
    subject,
    keyId: 'k',
    ip: '',
    route: unmatchedRoute,
    method: 'GET',
    cost: 1,
    peek: false,
    named: undefined,
    idempotencyKey: undefined,
    ...given,
  }
}
