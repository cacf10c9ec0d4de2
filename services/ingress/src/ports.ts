import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { RateLimitDialect } from '@weir/core/limits/older-rate-limit-headers.ts'
import type { Caller, CallerRequest } from '@weir/identity/caller.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { CorrectionAckQueue } from './decide/correct/correction-ack-queue.ts'
import type { DecisionLog, IdempotencyRecords, OutcomeLog, Pauses, Settlements } from './decide/ports.ts'
import type { LivePolicy } from './policy-view.ts'
import type { UpstreamBounds } from './routes/proxy/upstream-pools.ts'

/** Finds the caller of a request, and the address that limits count. */
export interface Authenticator {
  /** Returns a promise only where a signature must be verified. Never rejects. */
  authenticate(policy: Policy, request: CallerRequest): Caller | Promise<Caller>
  addressOf(policy: Policy, request: CallerRequest): string
}

/** What the entry points of the ingress work with. */
export interface Ports {
  readonly policy: LivePolicy
  readonly store: LimitStore
  readonly authenticator: Authenticator
  readonly log: DecisionLog
  /** Records what upstreams answered. No count depends on it, so a record that is not accepted is dropped. */
  readonly outcomes: OutcomeLog
  readonly clock: Clock
  /** With `admit`, what cannot be recorded is answered as decided; if left out, it is denied. */
  readonly onJournalFull?: 'refuse' | 'admit' | undefined
  readonly idempotencyRecords: IdempotencyRecords
  /** Without them no decision can be settled. */
  readonly settlements?: Settlements | undefined
  /** Without them no limit can be paused. */
  readonly pauses?: Pauses | undefined
  /** Acknowledges written corrections to the same Redis; without it, only a repeat does. */
  readonly ackQueue?: CorrectionAckQueue | undefined
  readonly crash?: CrashPoint | undefined
  /** How headers describe limits; draft 10 if left out. */
  readonly dialect?: RateLimitDialect | undefined
  /** As in `VerdictWords`. */
  readonly costStatus?: 403 | 413 | undefined
  /** Bounds of the proxy; `upstreamBounds` where one is left out. */
  readonly upstreamBounds?: Partial<UpstreamBounds> | undefined
  /** True where only this machine can call over gRPC. */
  readonly grpcNeedsNoToken?: boolean
}
