import { isOfOneSubject, type Limit, type Threshold } from '@weir/core/limits/limit.ts'
import { ownAlertsOf } from './contact-targets.ts'
import type { Policy } from './policy.ts'

/** Whether customers choose percentages for limits of this span. A minute is over before anybody reads a mail. */
export const hasChosen = (span: Limit['span']): boolean => span.kind === 'period' && span.unit !== 'minute'

/** The thresholds of a limit, with those that the customer has chosen for its calendar limits. */
export function thresholdsOf(
  limit: Limit,
  policy: Pick<Policy, 'ownAlerts' | 'subjects'>,
  subject: string,
): readonly Threshold[] {
  const isIts = hasChosen(limit.span) && limit.mode === 'enforce' && isOfOneSubject(limit.by)
  const chosen = isIts ? ownAlertsOf(policy, subject)?.percents : undefined
  // Nearly every decision: nothing is made for it.
  if (chosen === undefined) return limit.thresholds
  const added = chosen.filter((percent) => !limit.thresholds.some((one) => 'percent' in one && one.percent === percent))
  return [...limit.thresholds, ...added.map((percent) => ({ percent }))]
}
