import type { DecisionRecordV1 } from '@weir/contracts/decision.v1.ts'
import { type Claim, claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import { type ReachedThreshold, reachedThresholds } from '@weir/core/alerts/reached-thresholds.ts'
import { createBoundaryCache, periodStartLabel } from '@weir/core/calendar/calendar.ts'
import type { Limit, PeriodUnit } from '@weir/core/limits/limit.ts'
import type { Policy } from '@weir/policy/policy.ts'

/** What may become an alert. */
export interface Candidate {
  readonly subject: string
  /** Start of the period or the window; for a block, the time of the decision. */
  readonly startMs: number
  readonly endMs: number
  /** How long its claims live. */
  readonly lifetimeMs: number
  /** Whether its claims are free again after they expired, for another alert. */
  readonly isRecurring: boolean
  /** Highest first; each with the key that claims it. A block and a rate change have one. */
  readonly thresholds: readonly { readonly percent: number; readonly key: string }[]
}

/** A decision that found a limit's use at or above some of its thresholds, or its subject blocked by the limit. */
export interface Crossing extends Candidate {
  readonly kind: 'reached' | 'blocked'
  readonly limit: string
  readonly size: number
  readonly used: number
  readonly decisionId: string
}

type LimitUse = DecisionRecordV1['limits'][number]

/** One limit of a decision. */
interface Met {
  readonly policy: Policy
  readonly record: DecisionRecordV1
  readonly tsMs: number
  readonly use: LimitUse
  readonly limit: Limit
}

/** Cached, because a subject at its limit needs its period for every decision. */
const periodBoundaries = createBoundaryCache()

interface Zone {
  readonly timeZone: string
  readonly anchor: number
}

/** A subject that is no longer in the policy keeps its alerts, with days in UTC. */
const zoneOfUnknown: Zone = { timeZone: 'UTC', anchor: 1 }

/**
 * The period that a decision was counted in. Redis decided by its own clock, the record carries the ingress's: the
 * period's end is the boundary next to `ts + reset_ms`, so that two clocks a second apart never name different days.
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
 * Returns what a decision crossed, for every limit with thresholds or a block, by the subject's own version of the
 * limit. Most decisions cross nothing. A blocked decision charged nothing, and its reset is the block's, which may be
 * in another period.
 */
export function findCrossings(policy: Policy, record: DecisionRecordV1, tsMs: number): Crossing[] {
  const crossings: Crossing[] = []
  const own = policy.subjects.get(record.subject)?.ownLimits
  for (const use of record.limits) {
    const limit = own?.get(use.name) ?? policy.limits.get(use.name)
    if (limit === undefined) continue
    const met = { policy, record, tsMs, use, limit }
    if (isBlocked(met)) crossings.push(blockOf(met))
    if (record.reason === 'blocked' || limit.thresholds.length === 0) continue
    const reached = reachedThresholds(use, limit.thresholds)
    if (reached.length > 0) crossings.push(reachedBy(met, reached))
  }
  return crossings
}

/** Whether a limit with a block denied, be it the first denial or a later one. */
const isBlocked = ({ record, use, limit }: Met): boolean =>
  record.outcome === 'deny' &&
  record.denied_by === use.name &&
  limit.blockMs > 0 &&
  (record.reason === 'limit' || record.reason === 'blocked')

const aboutOf = ({ record, use, limit }: Met) => ({
  subject: record.subject,
  limit: limit.name,
  size: use.size,
  used: use.used,
  decisionId: record.id,
})

const keyOf = ({ record, use, limit }: Met, part: Pick<Claim, 'threshold' | 'periodStart'>) =>
  claimKey({ subject: record.subject, limit: limit.name, size: use.size, ...part })

function blockOf(met: Met): Crossing {
  const { record, tsMs, use, limit } = met
  const endMs = tsMs + (record.reason === 'blocked' ? use.reset_ms : limit.blockMs)
  const key = keyOf(met, { threshold: 'blocked', periodStart: 'cooldown' })
  return {
    ...{ kind: 'blocked', ...aboutOf(met), startMs: tsMs, endMs, isRecurring: true },
    // The next block is another alert. Never 0, which Redis refuses.
    lifetimeMs: Math.max(1, endMs - tsMs),
    thresholds: [{ percent: 100, key }],
  }
}

function reachedBy(met: Met, reached: readonly ReachedThreshold[]): Crossing {
  const { policy, record, tsMs, use, limit } = met
  const { span } = limit
  const withKeys = (periodStart: string) =>
    reached.map(({ name: threshold, percent }) => ({ percent, key: keyOf(met, { threshold, periodStart }) }))
  if (span.kind === 'window') {
    const endMs = tsMs + use.reset_ms
    const cooldown = { lifetimeMs: limit.cooldownMs, isRecurring: true, thresholds: withKeys('cooldown') }
    return { kind: 'reached', ...aboutOf(met), startMs: endMs - span.ms, endMs, ...cooldown }
  }
  const zone = policy.subjects.get(record.subject) ?? zoneOfUnknown
  const { startMs, endMs } = periodOf(span.unit, zone, tsMs, use.reset_ms)
  return {
    ...{ kind: 'reached', ...aboutOf(met), startMs, endMs },
    lifetimeMs: claimLifetimeMs(span.unit),
    isRecurring: false,
    thresholds: withKeys(periodStartLabel(span.unit, zone.timeZone, startMs)),
  }
}
