import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { AlertChoice, Policy } from '@weir/policy/policy.ts'

/** Returns whether an alert meets every condition of a choice. */
export function isChosen({ types, limits, subjects, percent }: AlertChoice, alert: AlertV1): boolean {
  if (types !== undefined && !types.includes(alert.type)) return false
  if (subjects !== undefined && !subjects.includes(alert.subject)) return false
  const limit = 'limit' in alert.data ? alert.data.limit : undefined
  if (limits !== undefined && (limit === undefined || !limits.includes(limit))) return false
  return percent === undefined || !('percent' in alert.data) || alert.data.percent >= percent
}

/**
 * Returns the name of a silence that an alert falls under; undefined if it is sent. The time that counts is when the
 * alert was raised, so that the same alert, read again, has the same answer. A test of an endpoint is always sent.
 */
export function findSilence(alert: AlertV1, { silences }: Pick<Policy, 'silences'>): string | undefined {
  // A digest has none of the alerts that fell under one.
  if (alert.type === 'weir.endpoint.test' || alert.type === 'weir.alerts.digest') return undefined
  for (const { name, only, fromMs, untilMs } of silences.values()) {
    const covers = (one: AlertV1) => {
      const raisedMs = Date.parse(one.time)
      return raisedMs >= fromMs && raisedMs < untilMs && isChosen(only, one)
    }
    if (alert.type !== 'weir.quota.resolved') {
      if (covers(alert)) return name
      continue
    }
    // Those who got an alert get its end, whatever silence began meanwhile, unless that names these ends.
    const { data, ...attributes } = alert
    const resolved = { ...attributes, type: 'weir.quota.reached', time: data.reached_at, data } as const
    if (covers(resolved) || (only.types !== undefined && covers(alert))) return name
  }
  return undefined
}
