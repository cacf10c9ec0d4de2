import { noOwnLimits, type Plan, type Policy, type Subject } from './policy.ts'
import { parseSubjectId } from './policy-values.ts'

/** A subject that the policy does not have, as one of a plan without settings of its own. */
export const unlistedSubject = (id: string, plan: Plan): Subject => ({
  id,
  plan,
  timeZone: 'UTC',
  anchor: 1,
  ownLimits: noOwnLimits,
})

/**
 * The subject that the holder of a token names: the policy's own, else one on `identity.unknown`, if it may be a
 * subject's id.
 */
export function subjectNamed({ subjects, identity }: Policy, id: string): Subject | undefined {
  const known = subjects.get(id)
  const plan = identity.unknownPlan
  if (known !== undefined || plan === undefined || parseSubjectId(id) === undefined) return known
  return unlistedSubject(id, plan)
}
