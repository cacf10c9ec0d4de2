import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { TraceContext } from '@weir/contracts/trace-context.ts'
import type { Watch } from '@weir/policy/policy.ts'
import type { Further } from './raise/claim-store.ts'
import type { RateRow } from './watch/rate-queries.ts'

/** What all candidates have. */
export interface Candidate {
  readonly subject: string
  /** Start of the period or the window; for a block, the time of the decision. */
  readonly startMs: number
  readonly endMs: number
  /** How long its claims live. */
  readonly lifetimeMs: number
  /** Whether its claims may be made again after they expired, for another alert. */
  readonly isRecurring: boolean
  /** Highest first; each with the key that claims it. A block, a forecast and a rate change have one. */
  readonly thresholds: readonly { readonly percent: number; readonly key: string }[]
}

interface DecisionCandidate extends Candidate {
  readonly limit: string
  readonly size: number
  readonly used: number
  readonly decisionId: string
  /** The time of that decision. */
  readonly decidedMs: number
  /** What the limit counted by beyond the subject; undefined for nothing. */
  readonly by?: Readonly<Record<string, string>> | undefined
  /** What it counts, if neither costs nor requests, and if that is money its currency. */
  readonly measured?: { readonly unit: string; readonly currency?: string } | undefined
  /** The span of the request, where the decision is traced. */
  readonly trace?: TraceContext | undefined
}

/**
 * A decision that found a limit's use at or above some of its thresholds, or on the way to its size before the period
 * ends, or its subject blocked by the limit.
 */
export type Crossing = DecisionCandidate &
  ({ readonly kind: 'reached' | 'blocked' } | { readonly kind: 'forecast'; readonly runsOutMs: number })

/** Blocks of one subject by one limit that had no alert of their own, within an hour that is over. */
export interface FurtherBlocks extends Candidate, Further {
  readonly kind: 'further'
  readonly more: number
}

/** A sudden change that a watch has found. */
export interface RateChange extends Candidate, RateRow {
  readonly kind: 'changed'
  readonly watch: string
  readonly alert: Watch['alert']
}

/** A threshold alert that is over. `size` and `used` are those of now, or the alert's at its period's end. */
export interface QuotaResolved extends Candidate {
  readonly kind: 'resolved'
  readonly alert: AlertOf<'weir.quota.reached'>
  readonly reason: 'period_ended' | 'size_changed' | 'used_less'
  readonly size: number
  readonly used: number
}

/** A finding that may become an alert. */
export type AlertCandidate = Crossing | RateChange | FurtherBlocks | QuotaResolved

/** Publishes alerts. Resolves when all are in Kafka on every in-sync replica. */
export type PublishAlerts = (alerts: readonly AlertV1[]) => Promise<unknown>

/** The data of a job: the alert as it was published, its endpoint, and the attempts so far. It holds no secret. */
export interface DeliveryJob {
  readonly alert: AlertV1
  /** Its name in the policy; of a contact's address the name of its target. */
  readonly endpoint: string
  /** When a person requested it again, in milliseconds since the epoch; 0 for a first delivery. */
  readonly requestedMs: number
  /** Attempts that were made. */
  readonly attempts: number
  /** No attempt is made before; milliseconds since the epoch. */
  readonly dueMs: number
  /** After it no further attempt is made. */
  readonly giveUpMs: number
}

/** The outcome of one run of a job. */
export type JobOutcome =
  /** The alert was delivered, or will never be sent. */
  | { readonly kind: 'over' }
  /** Every attempt failed: the job becomes a dead letter. */
  | { readonly kind: 'given_up'; readonly reason: string }
  /** The job runs again at `atMs`, with the data in `job`. */
  | { readonly kind: 'later'; readonly job: DeliveryJob; readonly atMs: number }

/** Records the outcomes of attempts. Resolves when Kafka has them; the table gets them later. */
export type RecordDeliveries = (deliveries: readonly DeliveryV1[]) => Promise<void>
