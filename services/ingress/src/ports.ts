import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { RateLimitDialect } from '@weir/core/limits/older-rate-limit-headers.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { CorrectionAckQueue } from './decide/correct/correction-ack-queue.ts'
import type { DecisionLog, IdempotencyRecords, OutcomeLog, Pauses, Settlements } from './decide/ports.ts'
import type { Authenticator } from './http/identity/caller.ts'
import type { LivePolicy } from './policy-view.ts'
import type { UpstreamBounds } from './routes/proxy/upstream-pools.ts'

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
  readonly idempotencyRecords?: IdempotencyRecords | undefined
  /** Without them no decision can be settled. */
  readonly settlements?: Settlements | undefined
  /** Without them no limit can be paused. */
  readonly pauses?: Pauses | undefined
  /** Of the same Redis; without it only a repeat tells Redis of a correction that it did not hear of. */
  readonly ackQueue?: CorrectionAckQueue | undefined
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
