import { unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Plan, type Policy, type Subject } from '@weir/policy/policy.ts'
import { parseSubjectId } from '@weir/policy/policy-values.ts'
import { LevelRules } from '@weir/policy/reader/level-rules.ts'

/** A caller that is only an address, as `addressScope` writes it. */
export const anonymousSubject = (scope: string, plan: Plan): Subject => unlistedSubject(`ip:${scope}`, plan)

/** The subject of requests that name none: they count under the gateway's domain. No subject of a policy begins so. */
export const unnamedSubject = (domain: string): Subject => unlistedSubject(`_domain:${domain}`, noPlan)

/**
 * The subject that a token or a trusted proxy names: the policy's own if it has one, else one of the plan that is named
 * along with it, else one of the plan that all of them have. Undefined where there is no plan, and for an id that no
 * subject may have: none may name Weir's own (`ip:…`, `_…`). One that the policy does not have is below the parent that
 * is named, if the policy has that; undefined where it cannot stand there, or where the parent is no text, as a limit
 * would be missing.
 */
export function namedSubject(
  policy: Policy,
  named: {
    readonly id: unknown
    readonly planName: unknown
    readonly plan: Plan | undefined
    readonly parent: unknown
  },
): Subject | undefined {
  const id = typeof named.id === 'string' ? parseSubjectId(named.id) : undefined
  if (id === undefined) return undefined
  const known = policy.subjects.get(id)
  if (known !== undefined) return known
  const plan = (typeof named.planName === 'string' ? policy.plans.get(named.planName) : undefined) ?? named.plan
  if (plan === undefined) return undefined
  if (named.parent !== undefined && typeof named.parent !== 'string') return undefined
  const parent = named.parent === undefined ? undefined : policy.subjects.get(named.parent)
  if (parent === undefined) return unlistedSubject(id, plan)
  const levelOf = (one: string) => {
    const above = one === parent.id ? parent : policy.subjects.get(one)
    return above && { parent: above.parent?.id, plan: above.plan }
  }
  const fault = levelRulesOf(policy).faultOf({ parent: parent.id, plan }, levelOf)
  return fault === undefined ? { ...unlistedSubject(id, plan), parent } : undefined
}

/** By the policy, which is another as soon as a plan is. */
const levelRules = new WeakMap<Policy, LevelRules>()

function levelRulesOf(policy: Policy): LevelRules {
  const known = levelRules.get(policy) ?? new LevelRules(policy)
  levelRules.set(policy, known)
  return known
}
