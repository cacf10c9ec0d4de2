import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { kindOf } from '@weir/contracts/journal.v1.ts'
import type { Policy } from '@weir/core/policy/policy.ts'
import { type Crossing, findCrossings } from './crossings.ts'

/** What alerting needs of a record in Kafka. */
export interface WatchedRecord {
  readonly value: Buffer | null
}

export interface WatchCounters {
  read: number
  /** Skipped; metering keeps them as dead letters, so alerting need not. */
  unreadable: number
}

/**
 * Folds a batch to its crossings: of several decisions above a threshold only the first matters, and of a record that sums
 * refusals its one state of the limits. A correction tells of the limits whose counts it changed, as any decision does. A batch
 * goes by the policy that is in force when it comes.
 */
export function createWatcher(
  policyInForce: () => Policy,
  counters: WatchCounters,
): (records: readonly WatchedRecord[]) => Crossing[] {
  return function watchDecisions(records) {
    const policy = policyInForce()
    const seen = new Set<string>()
    const found: Crossing[] = []
    for (const { value } of records) {
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
}
