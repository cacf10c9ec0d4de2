import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { kindOf } from '@weir/contracts/journal.v1.ts'
import { ownLimitSetsOf, type Policy } from '@weir/core/policy/policy.ts'
import { type Crossing, findCrossings } from './crossings.ts'
import { createNearLimits } from './near-limits.ts'

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

/** Of every limit that some subject has thresholds for, the lowest of them all. */
function lowestThresholds(policy: Policy): ReadonlyMap<string, number> {
  const lowest = new Map<string, number>()
  for (const versions of [policy.limits, ...ownLimitSetsOf(policy)]) {
    for (const { name, thresholds } of versions.values()) {
      const [first] = thresholds
      if (first !== undefined) lowest.set(name, Math.min(first, lowest.get(name) ?? first))
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
    isNearLimits ??= createNearLimits(lowestThresholds(policy))
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
      for (const crossing of findCrossings(policy, parsed.decision, parsed.tsMs)) {
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
