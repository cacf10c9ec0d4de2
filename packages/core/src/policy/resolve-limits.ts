import { type Limit, limitsPerDecisionMax } from '../limits/limit.ts'
import type { Plan, Policy, Subject } from './policy.ts'

/**
 * Gives the limits of a subject: its plan's in the plan's order, then those for all, each once. The list of one plan is
 * the same array every time, so that what is derived from it can be kept by identity.
 */
export function createLimitResolver(policy: Policy): (subject: Subject) => readonly Limit[] {
  const byPlan = new Map<Plan, readonly Limit[]>()
  for (const plan of policy.plans.values()) byPlan.set(plan, limitsOf(plan, policy.limitsForAll))
  return function resolveLimits(subject) {
    const limits = byPlan.get(subject.plan)
    if (limits === undefined)
      throw new RangeError(`subject ${subject.id} is of another policy: plan ${subject.plan.name}`)
    return limits
  }
}

function limitsOf(plan: Plan, limitsForAll: readonly Limit[]): readonly Limit[] {
  const byName = new Map<string, Limit>()
  for (const limit of [...plan.limits, ...limitsForAll]) byName.set(limit.name, limit)
  // parsePolicy has refused such a plan with its line; this holds for policies made in other ways.
  if (byName.size > limitsPerDecisionMax) throw new RangeError(`plan ${plan.name} has ${byName.size} limits`)
  return [...byName.values()]
}
