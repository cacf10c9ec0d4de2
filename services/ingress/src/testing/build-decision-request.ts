import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { DecisionRequest } from '../decide/types.ts'
import type { PolicyView } from '../policy-view.ts'

/** A request of cost 1 of a subject that the policy has; a test states only what matters to it. */
export function buildDecisionRequest(
  view: PolicyView,
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
