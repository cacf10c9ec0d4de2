import type { DecisionRecordV1 } from '@weir/contracts/decision-columns.ts'
import { parseTrace } from '@weir/contracts/trace-context.ts'
import { claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import { runsOutMs } from '@weir/core/alerts/forecast.ts'
import { reachedThresholds } from '@weir/core/alerts/reached-thresholds.ts'
import { createBoundaryCache, periodStartLabel } from '@weir/core/calendar/calendar.ts'
import { isOfOneSubject, type Limit, type PeriodUnit, type Threshold } from '@weir/core/limits/limit.ts'
import { thresholdsOf } from '@weir/policy/alert-thresholds.ts'
import { keyWithId, type Policy } from '@weir/policy/policy.ts'
import type { Crossing } from '../types.ts'

/** Cached, because a subject at its limit needs its period for every decision. */
const periodBoundaries = createBoundaryCache()

interface Zone {
  readonly timeZone: string
  readonly anchor: number
}

/** A subject that is no longer in the policy keeps its alerts, with days in UTC. */
const zoneOfUnknown: Zone = { timeZone: 'UTC', anchor: 1 }

/**
 * Returns the period that a decision was counted in. Redis decided by its own clock, the record carries the ingress's:
 * the period's end is the boundary next to `ts + reset_ms`, so that clocks a second apart never name different days.
 */
function periodOf(unit: PeriodUnit, zone: Zone, tsMs: number, resetMs: number): { startMs: number; endMs: number } {
  const endMs = tsMs + resetMs
  const [start, next, afterNext] = periodBoundaries(unit, zone.timeZone, zone.anchor, tsMs)
  if (endMs - start < next - endMs) {
    const [before] = periodBoundaries(unit, zone.timeZone, zone.anchor, start - 1)
    return { startMs: before, endMs: start }
  }
  if (endMs - next > afterNext - endMs) return { startMs: next, endMs: afterNext }
  return { startMs: start, endMs: next }
}

/** Returns the period or the window of a decision, and the claims of an alert about it. */
function timesOf({ span, cooldownMs }: Limit, zone: Zone, tsMs: number, resetMs: number) {
  if (span.kind === 'window') {
    const endMs = tsMs + resetMs
    const times = { startMs: endMs - span.ms, endMs, lifetimeMs: cooldownMs, isRecurring: true }
    return { times, periodStart: 'cooldown' }
  }
  const { startMs, endMs } = periodOf(span.unit, zone, tsMs, resetMs)
  const times = { startMs, endMs, lifetimeMs: claimLifetimeMs(span.unit), isRecurring: false }
  return { times, periodStart: periodStartLabel(span.unit, zone.timeZone, startMs) }
}

/** Whether a limit with a block denied, be it the first denial or a later one. */
const isBlockedBy = ({ name, blockMs }: Limit, { outcome, reason, denied_by }: DecisionRecordV1): boolean =>
  outcome === 'deny' && denied_by === name && blockMs > 0 && (reason === 'limit' || reason === 'blocked')

/**
 * Returns how long a block is that a refusal has set. Of a limit whose blocks grow the record says no more than when
 * block and count are both over: the longest block that is over by then, which is it wherever the count is over first.
 */
const lengthOfBlock = ({ blockMs, blockLengths }: Limit, resetMs: number): number =>
  blockLengths === undefined ? blockMs : (blockLengths.findLast((ms) => ms <= resetMs) ?? blockLengths[0] ?? blockMs)

/** What a limit counts besides costs and requests. */
function measuredBy({ unit }: Limit, { rateCards }: Policy): Crossing['measured'] {
  if (unit === undefined || unit === 'requests') return undefined
  const currency = rateCards.get(unit)?.currency
  return currency === undefined ? { unit } : { unit, currency }
}

/**
 * Returns what a decision crossed, for every limit with thresholds or a block, at the subject that the limit counts and
 * by its own version of the limit. Most decisions cross nothing. A blocked decision charged nothing, and its reset is
 * the block's, which may be in another period.
 */
export function findCrossings(policy: Policy, record: DecisionRecordV1, tsMs: number): Crossing[] {
  const crossings: Crossing[] = []
  const { reason, id: decisionId } = record
  const trace = parseTrace(record.trace)
  const own = policy.subjects.get(record.subject)
  for (const { name, size, used, reset_ms: resetMs, by, at } of record.limits) {
    const subject = at ?? record.subject
    const ofKey = by?.key === undefined ? undefined : keyWithId(policy, by.key)?.subject
    const known = at === undefined ? (ofKey ?? own) : policy.subjects.get(at)
    const limit = known?.ownLimits?.get(name) ?? policy.limits.get(name)
    if (limit === undefined) continue
    const measured = measuredBy(limit, policy)
    const about = { subject, limit: name, size, used, decisionId, decidedMs: tsMs, by, trace, measured }
    const keyOf = (threshold: string, periodStart: string) =>
      claimKey({ subject, limit: name, size, threshold, periodStart })
    if (isBlockedBy(limit, record)) {
      const endMs = tsMs + (reason === 'blocked' ? resetMs : lengthOfBlock(limit, resetMs))
      // The next block is another alert. Never 0, which Redis refuses.
      const lifetimeMs = Math.max(1, endMs - tsMs)
      // Each value that the limit counts by has blocks of its own.
      const key = claimKey({ subject, limit: name, size, threshold: 'blocked', periodStart: 'cooldown', by })
      const thresholds = [{ percent: 100, key }]
      crossings.push({ kind: 'blocked', ...about, startMs: tsMs, endMs, lifetimeMs, isRecurring: true, thresholds })
    }
    if (reason === 'blocked') continue
    const reached = reachedThresholds({ size, used }, thresholdsOf(limit, policy, subject))
    if (reached.length === 0 && limit.forecast === undefined) continue
    const { times, periodStart } = timesOf(limit, known ?? zoneOfUnknown, tsMs, resetMs)
    const outMs = limit.forecast === undefined ? undefined : runsOutMs({ size, used }, times, tsMs)
    if (outMs !== undefined) {
      const thresholds = [{ percent: 0, key: keyOf('forecast', periodStart) }]
      crossings.push({ kind: 'forecast', ...about, ...times, runsOutMs: outMs, thresholds })
    }
    if (reached.length === 0) continue
    const thresholds = reached.map((one) => ({ percent: one.percent, key: keyOf(one.name, periodStart) }))
    crossings.push({ kind: 'reached', ...about, ...times, thresholds })
  }
  return crossings
}
