import type { RateLimitDialect } from '@weir/core/limits/rate-limit-headers.ts'
import type { SettlingParts } from '@weir/decide/correct/settle.ts'
import type { DecisionServiceParts } from '@weir/decide/decision-service.ts'
import type { OutcomeLog, Pauses } from '@weir/decide/ports.ts'
import type { Caller, CallerRequest } from '@weir/identity/caller.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { LivePolicy } from './policy-view.ts'
import type { UpstreamBounds } from './routes/proxy/upstream-pools.ts'
import type { RequestTraces } from './trace/request-trace.ts'

/** Finds the caller of a request, and the address that limits count. */
export interface Authenticator {
  /** Returns a promise only where a signature must be verified. Never rejects. */
  authenticate(policy: Policy, request: CallerRequest): Caller | Promise<Caller>
  addressOf(policy: Policy, request: CallerRequest): string
}

/** What the entry points of the ingress work with. */
export interface Ports extends Omit<DecisionServiceParts, 'corrections'>, Omit<SettlingParts, 'corrections' | 'store'> {
  readonly policy: LivePolicy
  readonly authenticator: Authenticator
  /** Records what upstreams answered. No count depends on it, so a record that is not accepted is dropped. */
  readonly outcomes: OutcomeLog
  /** Without them no limit can be paused. */
  readonly pauses?: Pauses | undefined
  /** How headers describe limits; draft 10 if left out. */
  readonly dialect?: RateLimitDialect | undefined
  /** As in `ReplySettings`. */
  readonly costStatus?: 403 | 413 | undefined
  /** Bounds of the proxy; `upstreamBounds` where one is left out. */
  readonly upstreamBounds?: Partial<UpstreamBounds> | undefined
  /** Undefined where nothing is traced. */
  readonly traces?: RequestTraces | undefined
  /** True where only this machine can call over gRPC. */
  readonly grpcNeedsNoToken?: boolean
}
