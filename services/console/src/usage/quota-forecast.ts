import { runsOutAtPaceMs } from '@weir/core/alerts/forecast.ts'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { isOfPlan } from '@weir/policy/match/resolve-limits.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { UtilizationRow } from './utilization-queries.ts'

/** A shorter quota is over before anybody reads of it, and the pace of days says nothing of it. */
const forecastUnits: readonly string[] = ['day', 'week', 'month']

/**
 * Returns a function that says when a row's quota is used up in its running period, at the pace since `paceFromMs`.
 * Undefined for a limit that is no quota of a day, week or month in the policy in force, that counts by more than the
 * subject (the pace of its fullest count is not known), or that does not apply to the subject any more, and for a quota
 * that lasts until its period ends.
 */
export function createRunsOut(
  policy: Policy,
  { nowMs, paceFromMs }: { readonly nowMs: number; readonly paceFromMs: number },
): (row: UtilizationRow) => number | undefined {
  const boundariesOf = createBoundaryCache()
  const forAll = [...policy.limitsForAll, ...policy.routes.flatMap(({ limits }) => limits)]
  const everywhere = new Set(forAll.map(({ name }) => name))
  return function runsOut({ subject: id, limit: name, last_ms: lastMs, last_used: lastUsed, pace_cost: units }) {
    const subject = policy.subjects.get(id)
    const limit = subject?.ownLimits.get(name) ?? policy.limits.get(name)
    // The plan of a subject that the policy lacks stands in its token: what it met lately applies.
    const isNamed = everywhere.has(name) || subject?.plan.limits.some((one) => one.name === name) !== false
    const applies = isNamed && (subject === undefined || limit === undefined || isOfPlan(limit, subject.plan.name))
    if (limit?.span.kind !== 'period' || !forecastUnits.includes(limit.span.unit) || !applies) return undefined
    if (limit.by.some(({ kind }) => kind !== 'subject')) return undefined
    const { timeZone, anchor } = subject ?? { timeZone: 'UTC', anchor: 1 }
    const [startMs, endMs] = boundariesOf(limit.span.unit, timeZone, anchor, nowMs)
    const used = lastMs >= startMs ? lastUsed : 0
    return runsOutAtPaceMs({ used, size: limit.size }, { units, ms: nowMs - paceFromMs }, { nowMs, endMs })
  }
}
