import type { DecisionRecordV1 } from '@weir/contracts/decision.v1.ts'
import { claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import { reachedThresholds } from '@weir/core/alerts/reached-thresholds.ts'
import type { Limit, PeriodUnit } from '@weir/core/limits/limit.ts'
import { createBoundaryCache } from '@weir/core/policy/boundary-cache.ts'
import { periodStartLabel } from '@weir/core/policy/calendar.ts'
import type { Policy } from '@weir/core/policy/policy.ts'

/** One decision that found a limit's use at or above some of its thresholds. */
export interface Crossing {
  readonly subject: string
  readonly limit: string
  readonly size: number
  readonly used: number
  readonly decisionId: string
  readonly periodStartMs: number
  readonly periodEndMs: number
  readonly lifetimeMs: number
  /** Highest first; each with the key that claims it. */
  readonly thresholds: readonly { readonly percent: number; readonly key: string }[]
}

/** A subject at its limit is asked about for every decision. */
const periodBoundaries = createBoundaryCache()

interface Zone {
  readonly timeZone: string
  readonly anchor: number
}

/** A subject that the policy no longer has keeps its alerts, with days in UTC. */
const zoneOfStrangers: Zone = { timeZone: 'UTC', anchor: 1 }

/**
 * The period that a decision was counted in. Redis decided by its own clock, the record carries the ingress's: the period's
 * end is the boundary next to `ts + reset_ms`, so that two clocks a second apart never name different days.
 */
function periodOf(unit: PeriodUnit, zone: Zone, tsMs: number, resetMs: number): { startMs: number; endMs: number } {
  const endMs = tsMs + resetMs
  const [start, next] = periodBoundaries(unit, zone.timeZone, zone.anchor, tsMs)
  if (endMs - start < next - endMs) {
    const [before] = periodBoundaries(unit, zone.timeZone, zone.anchor, start - 1)
    return { startMs: before, endMs: start }
  }
  const [, , afterNext] = periodBoundaries(unit, zone.timeZone, zone.anchor, tsMs)
  if (endMs - next > afterNext - endMs) return { startMs: next, endMs: afterNext }
  return { startMs: start, endMs: next }
}

/**
 * The thresholds that a decision found reached, for every limit that has any, in the subject's own version. Most decisions
 * have none. A blocked one used up nothing, and its reset is the block's, which may lie in another period.
 */
export function findCrossings(policy: Policy, record: DecisionRecordV1, tsMs: number): Crossing[] {
  const crossings: Crossing[] = []
  if (record.reason === 'blocked') return crossings
  const own = policy.subjects.get(record.subject)?.ownLimits
  for (const state of record.limits) {
    const limit = own?.get(state.name) ?? policy.limits.get(state.name)
    if (limit === undefined || limit.thresholds.length === 0 || limit.span.kind !== 'period') continue
    const reached = reachedThresholds(state, limit.thresholds)
    if (reached.length > 0) crossings.push(crossing(policy, record, tsMs, state, limit, limit.span.unit, reached))
  }
  return crossings
}

function crossing(
  policy: Policy,
  record: DecisionRecordV1,
  tsMs: number,
  state: DecisionRecordV1['limits'][number],
  limit: Limit,
  unit: PeriodUnit,
  reached: readonly number[],
): Crossing {
  const zone = policy.subjects.get(record.subject) ?? zoneOfStrangers
  const { startMs, endMs } = periodOf(unit, zone, tsMs, state.reset_ms)
  const periodStart = periodStartLabel(unit, zone.timeZone, startMs)
  const { subject } = record
  const { size, used } = state
  return {
    subject,
    limit: limit.name,
    size,
    used,
    decisionId: record.id,
    periodStartMs: startMs,
    periodEndMs: endMs,
    lifetimeMs: claimLifetimeMs(unit),
    thresholds: reached.map((percent) => ({
      percent,
      key: claimKey({ subject, limit: limit.name, size, percent, periodStart }),
    })),
  }
}
