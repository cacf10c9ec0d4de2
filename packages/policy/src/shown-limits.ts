import type { Limit } from '@weir/core/limits/limit.ts'
import type { Policy } from './policy.ts'

/** Returns whether a limit is hidden from a subject: one that is in shadow, for all or in the subject's own version. */
export function isHiddenFrom(
  { limits, subjects }: Pick<Policy, 'limits' | 'subjects'>,
  subject: string,
  name: string,
): boolean {
  const isShadow = (limit: Limit | undefined) => limit?.mode === 'shadow'
  return isShadow(limits.get(name)) || isShadow(subjects.get(subject)?.ownLimits.get(name))
}
