import { unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Plan, type Policy, type Subject } from '@weir/policy/policy.ts'
import { parseSubjectId } from '@weir/policy/policy-values.ts'

/** A caller that is only an address, as `addressScope` writes it. */
export const anonymousSubject = (scope: string, plan: Plan): Subject => unlistedSubject(`ip:${scope}`, plan)

/** The subject of requests that name none: they count under the gateway's domain. No subject of a policy begins so. */
export const unnamedSubject = (domain: string): Subject => unlistedSubject(`_domain:${domain}`, noPlan)

/**
 * The subject that a token or a trusted proxy names: the policy's own if it has one, else one of the plan that is named
 * along with it, else one of the plan that all of them have. Undefined where there is no plan, and for an id that no
 * subject may have: none may name Weir's own (`ip:…`, `_…`).
 */
export function namedSubject(
  policy: Policy,
  named: { readonly id: unknown; readonly planName: unknown; readonly plan: Plan | undefined },
): Subject | undefined {
  const id = typeof named.id === 'string' ? parseSubjectId(named.id) : undefined
  if (id === undefined) return undefined
  const known = policy.subjects.get(id)
  if (known !== undefined) return known
  const plan = (typeof named.planName === 'string' ? policy.plans.get(named.planName) : undefined) ?? named.plan
  return plan === undefined ? undefined : unlistedSubject(id, plan)
}
