import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { isHiddenFrom } from '@weir/policy/shown-limits.ts'

/**
 * Returns whether a contact may get an alert about its subject: the same that the subject's own key reads of alerts. It
 * learns nothing of a limit in shadow, nor what others used of a limit that they share, nor of an endpoint.
 */
export function isForCustomer(alert: AlertV1, policy: Pick<Policy, 'limits' | 'subjects'>): boolean {
  if (alert.type === 'weir.endpoint.disabled') return false
  if (!('limit' in alert.data)) return true
  const { limit: name } = alert.data
  if (isHiddenFrom(policy, alert.subject, name)) return false
  if (alert.type === 'weir.limit.blocked') return true
  const limit = policy.limits.get(name)
  return limit !== undefined && isOfOneSubject(limit.by)
}
