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

/**
 * Whether requests can count for this subject now: the policy has it, or lets in callers whom it does not list. Who was
 * deleted is no subject any more.
 */
export function mayBeSubject({ subjects, identity }: Policy, id: string): boolean {
  if (subjects.get(id) !== undefined) return true
  const { unknownPlan, jwt, trustedHeaders: trusted } = identity
  const issuersLetIn = jwt.some(({ plan, planClaim }) => plan !== undefined || planClaim !== undefined)
  const proxiesLetIn = trusted?.plan !== undefined || trusted?.planHeader !== undefined
  return (unknownPlan !== undefined || issuersLetIn || proxiesLetIn) && parseSubjectId(id) !== undefined
}
