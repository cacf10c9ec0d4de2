import { type DecisionRecordV1, parseDecision } from '@weir/contracts/decision.v1.ts'
import { kindOf } from '@weir/contracts/journal.v1.ts'
import { ownLimitSetsOf, type Policy } from '@weir/policy/policy.ts'
import { type Crossing, findCrossings } from './crossings.ts'
import { createNearLimits, type LowestAlert } from './near-limits.ts'

/** What alerting needs of a record in Kafka. */
export interface WatchedRecord {
  readonly value: Buffer | null
  readonly bytes: Buffer
  readonly valueStart: number
  readonly valueEnd: number
}

export interface WatchCounters {
  read: number
  /** Skipped; metering keeps them as dead letters, so alerting need not. */
  unreadable: number
}

/** Beyond this nothing is a time any more. */
const timeMsMax = 8.64e15 - 400 * 86_400_000
/** Longer subjects make no key of Redis; no ingress writes any. */
const subjectMax = 1_024

/** A record with impossible values, which only others write, crosses nothing. */
function crossingsOf(policy: Policy, decision: DecisionRecordV1, tsMs: number): readonly Crossing[] {
  const isPossible = ({ reset_ms }: DecisionRecordV1['limits'][number]) => reset_ms >= 0 && tsMs + reset_ms < timeMsMax
  if (decision.subject.length > subjectMax || !decision.limits.every(isPossible)) return []
  return findCrossings(policy, decision, tsMs)
}

const noAlert: LowestAlert = { percent: Number.POSITIVE_INFINITY, units: Number.POSITIVE_INFINITY, isBlocking: false }

/** From where on each limit may alert, for whichever subject. */
function lowestAlerts(policy: Policy): ReadonlyMap<string, LowestAlert> {
  const lowest = new Map<string, LowestAlert>()
  for (const versions of [policy.limits, ...ownLimitSetsOf(policy)]) {
    for (const { name, thresholds, blockMs } of versions.values()) {
      if (thresholds.length === 0 && blockMs === 0) continue
      const before = lowest.get(name) ?? noAlert
      lowest.set(name, {
        percent: Math.min(
          before.percent,
          ...thresholds.map((one) => ('percent' in one ? one.percent : noAlert.percent)),
        ),
        units: Math.min(before.units, ...thresholds.map((one) => ('units' in one ? one.units : noAlert.units))),
        isBlocking: before.isBlocking || blockMs > 0,
      })
    }
  }
  return lowest
}

export interface Watcher {
  watch(records: readonly WatchedRecord[]): Crossing[]
  /** The policy, or who is subject to it, has changed. */
  policyChanged(): void
}

/**
 * Folds a batch to its crossings: of several decisions above a threshold only the first matters, and of a record that sums
 * refusals its one state of the limits. A correction tells of the limits whose counts it changed, as any decision does. A batch
 * goes by the policy that is in force when it comes.
 */
export function createWatcher(policyInForce: () => Policy, counters: WatchCounters): Watcher {
  let isNearLimits: ReturnType<typeof createNearLimits> | undefined
  const watch = (records: readonly WatchedRecord[]) => {
    const policy = policyInForce()
    isNearLimits ??= createNearLimits(lowestAlerts(policy))
    const seen = new Set<string>()
    const found: Crossing[] = []
    for (const record of records) {
      if (record.valueStart >= 0 && !isNearLimits(record.bytes, record.valueStart, record.valueEnd)) {
        counters.read += 1
        continue
      }
      const { value } = record
      // What journals say of themselves tells of no use.
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
    policyChanged() {
      isNearLimits = undefined
    },
  }
}
