import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { AlertChoice, Policy } from '@weir/policy/policy.ts'

function isChosen({ types, limits, subjects, percent }: AlertChoice, alert: AlertV1): boolean {
  if (types !== undefined && !types.includes(alert.type)) return false
  if (subjects !== undefined && !subjects.includes(alert.subject)) return false
  const limit = 'limit' in alert.data ? alert.data.limit : undefined
  if (limits !== undefined && (limit === undefined || !limits.includes(limit))) return false
  return percent === undefined || alert.type !== 'weir.quota.reached' || alert.data.percent >= percent
}

/**
 * Returns the endpoints of an alert: every endpoint whose `only` selects it. A test goes to its own endpoint alone,
 * whatever that selects; the alert about a disabled endpoint goes to the others.
 */
export function chooseEndpoints(alert: AlertV1, { endpoints }: Pick<Policy, 'endpoints'>): readonly string[] {
  const all = [...endpoints.values()]
  const chosen = all.filter(({ name, only }) => {
    if (alert.type === 'weir.endpoint.test') return name === alert.data.endpoint
    if (alert.type === 'weir.endpoint.disabled' && name === alert.data.endpoint) return false
    return isChosen(only, alert)
  })
  return chosen.map(({ name }) => name)
}
