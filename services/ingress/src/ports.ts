import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { Policy } from '@weir/core/policy/policy.ts'

/** Where decisions are recorded. Never waits; false means that the bound is reached and nothing was taken. */
export interface DecisionLog {
  append(key: string, openLine: string): boolean
}

/** What the doors of the ingress work with. */
export interface Ports {
  readonly policy: Policy
  readonly store: LimitStore
  readonly log: DecisionLog
  readonly clock: Clock
}
