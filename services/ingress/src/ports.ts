import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { RateLimitDialect } from '@weir/core/limits/older-rate-limit-headers.ts'
import type { RecordLog } from '@weir/journal/record-log.ts'
import type { Pauses } from '@weir/redis/pauses.ts'
import type { Settlements } from '@weir/redis/settlements.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Telling } from './decide/correct/correction-ack-queue.ts'
import type { Admissions } from './decide/record/idempotency-records.ts'
import type { Authenticator } from './http/identity/caller.ts'
import type { LivePolicy } from './policy-view.ts'
import type { UpstreamBounds } from './routes/proxy/upstream-pools.ts'

/** Where decisions are recorded; see `RecordLog`. */
export type DecisionLog = Pick<RecordLog, 'append' | 'openSum' | 'written' | 'landed'>

/** Where it is enough that a record is taken, and nobody waits for the disk. */
export type OutcomeLog = Pick<RecordLog, 'append'>

/** What the doors of the ingress work with. */
export interface Ports {
  readonly policy: LivePolicy
  readonly store: LimitStore
  readonly authenticator: Authenticator
  readonly log: DecisionLog
  /** What upstreams answered. No count depends on it: what is not taken is only missed. */
  readonly outcomes: OutcomeLog
  readonly clock: Clock
  /** What is done with what cannot be recorded; refused if left out. */
  readonly onJournalFull?: 'refuse' | 'admit' | undefined
  /** Shared with the other processes; of this one alone if left out. */
  readonly admissions?: Admissions | undefined
  /** Without them no decision can be settled. */
  readonly settlements?: Settlements | undefined
  /** Without them no limit can be paused. */
  readonly pauses?: Pauses | undefined
  /** Tells the same Redis, where that did not hear at once that a correction is written; without it, only a repeat does. */
  readonly telling?: Telling | undefined
  readonly crash?: CrashPoint | undefined
  /** Of the headers that tell of limits; draft 10 if left out. */
  readonly dialect?: RateLimitDialect | undefined
  /** As in `VerdictWords`. */
  readonly costStatus?: 403 | 413 | undefined
  /** Of the proxy; `upstreamBounds` where one is left out. */
  readonly upstreamBounds?: Partial<UpstreamBounds> | undefined
  /** Where only this machine can call over gRPC. */
  readonly grpcNeedsNoToken?: boolean
}
