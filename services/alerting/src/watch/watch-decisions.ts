import { parseDecision } from '@weir/contracts/decision.v1.ts'
import type { DecisionRecordV1 } from '@weir/contracts/decision-columns.ts'
import { kindOf } from '@weir/contracts/journal.v1.ts'
import { shortestPeriodMs } from '@weir/core/limits/limit.ts'
import type { RecordBatch } from '@weir/kafka/consume-batches.ts'
import { hasChosen } from '@weir/policy/alert-thresholds.ts'
import { ownLimitSetsOf, type Policy } from '@weir/policy/policy.ts'
import type { Counters } from '../metrics.ts'
import type { Crossing } from '../types.ts'
import { findCrossings } from './crossings.ts'
import { createThresholdPrefilter, type LowestAlert } from './threshold-prefilter.ts'

/** The parts of a Kafka record that alerting reads. */
export type WatchedRecord = Pick<RecordBatch['records'][number], 'value' | 'bytes' | 'valueStart' | 'valueEnd'>

/** The largest time that a Date can hold, less a year. */
const timeMsMax = 8.64e15 - 400 * 86_400_000
/** Longer subjects are ignored; no ingress writes any. */
const subjectMax = 1_024
/** A limit counts by at most eight. */
const scopePartsMax = 8

/** Returns no crossing for impossible values, which only foreign programs write. */
function crossingsOf(policy: Policy, decision: DecisionRecordV1, tsMs: number): readonly Crossing[] {
  const isPossible = ({ reset_ms }: DecisionRecordV1['limits'][number]) => reset_ms >= 0 && tsMs + reset_ms < timeMsMax
  const isShort = ({ by = {}, at = '' }: DecisionRecordV1['limits'][number]) =>
    at.length <= subjectMax &&
    Object.keys(by).length <= scopePartsMax &&
    Object.entries(by).every((texts) => texts.join().length <= subjectMax)
  if (decision.subject.length > subjectMax || !decision.limits.every(isPossible)) return []
  if (!decision.limits.every(isShort)) return []
  return findCrossings(policy, decision, tsMs)
}

const noAlert: LowestAlert = { percent: Number.POSITIVE_INFINITY, units: Number.POSITIVE_INFINITY, isBlocking: false }

/** Returns the lowest use from which each limit may alert, over all subjects. */
function lowestAlerts(policy: Policy): ReadonlyMap<string, LowestAlert> {
  const lowest = new Map<string, LowestAlert>()
  let percent = noAlert.percent
  for (const { percents } of policy.ownAlerts.values()) percent = Math.min(percent, ...percents)
  const chosen = percent === noAlert.percent ? [] : [{ percent }]
  for (const versions of [policy.limits, ...ownLimitSetsOf(policy)]) {
    for (const { name, thresholds: own, blockMs, forecast, span } of versions.values()) {
      const thresholds = hasChosen(span) ? [...own, ...chosen] : own
      if (thresholds.length === 0 && blockMs === 0 && forecast === undefined) continue
      const before = lowest.get(name) ?? noAlert
      lowest.set(name, {
        percent: Math.min(
          before.percent,
          ...thresholds.map((one) => ('percent' in one ? one.percent : noAlert.percent)),
        ),
        units: Math.min(before.units, ...thresholds.map((one) => ('units' in one ? one.units : noAlert.units))),
        isBlocking: before.isBlocking || blockMs > 0,
        // All versions of a limit have its period.
        ...(forecast !== undefined && span.kind === 'period' ? { periodMs: shortestPeriodMs[span.unit] } : {}),
      })
    }
  }
  return lowest
}

/**
 * Reduces a batch to its crossings: of several decisions above a threshold only the first matters, and a coalesced
 * record has one state of its limits. A correction carries the limits whose counts it changed, as any decision does. A
 * batch is read under the policy in force when it arrives.
 */
export function createWatcher(policyInForce: () => Policy, counters: Counters) {
  let mayCross: ReturnType<typeof createThresholdPrefilter> | undefined
  const watch = (records: readonly WatchedRecord[]): Crossing[] => {
    const policy = policyInForce()
    mayCross ??= createThresholdPrefilter(lowestAlerts(policy))
    const seen = new Set<string>()
    const found: Crossing[] = []
    for (const record of records) {
      if (record.valueStart >= 0 && !mayCross(record.bytes, record.valueStart, record.valueEnd)) {
        counters.read += 1
        continue
      }
      const { value } = record
      // Watermarks and gap records carry no use of a limit.
      if (value !== null && kindOf(value) !== 'record') continue
      counters.read += 1
      const parsed = value === null ? undefined : parseDecision(value)
      if (parsed?.kind !== 'decision') {
        counters.unreadable += 1
        continue
      }
      for (const crossing of crossingsOf(policy, parsed.decision, parsed.tsMs)) {
        const news = crossing.thresholds.filter(({ key }) => !seen.has(key))
        for (const { key } of news) seen.add(key)
        if (news.length > 0) found.push({ ...crossing, thresholds: news })
      }
    }
    return found
  }
  return {
    watch,
    /** Forgets what was derived from the policy, because the policy or its subjects changed. */
    policyChanged(): void {
      mayCross = undefined
    },
  }
}
