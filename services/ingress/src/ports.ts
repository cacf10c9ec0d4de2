import type { RateLimitDialect } from '@weir/core/limits/rate-limit-headers.ts'
import type { SettlingParts } from '@weir/decide/correct/settle.ts'
import type { DecisionServiceParts } from '@weir/decide/decision-service.ts'
import type { OutcomeLog, Pauses } from '@weir/decide/ports.ts'
import type { Authenticator } from '@weir/identity/authenticate.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import type { LivePolicy } from './policy-view.ts'
import type { UpstreamBounds } from './routes/proxy/upstream-pools.ts'
import type { RequestTraces } from './trace/request-trace.ts'

/** What the entry points of the ingress work with. */
export interface Ports extends Omit<DecisionServiceParts, 'corrections'>, Omit<SettlingParts, 'corrections' | 'store'> {
  readonly policy: LivePolicy
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'addressOf'>
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
  /** The variables that hold credentials of upstreams; none if left out. */
  readonly environment?: Environment | undefined
  /** Undefined where nothing is traced. */
  readonly traces?: RequestTraces | undefined
  /** True where only this machine can call over gRPC. */
  readonly grpcNeedsNoToken?: boolean
}
