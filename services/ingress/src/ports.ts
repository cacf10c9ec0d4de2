import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { RateLimitDialect } from '@weir/core/limits/older-rate-limit-headers.ts'
import type { Identifier } from './http/identify.ts'
import type { LivePolicy } from './policy-view.ts'

/** Where decisions are recorded. Never waits; false means that the bound is reached and nothing was taken. */
export interface DecisionLog {
  append(key: string, openLine: string): boolean
}

/** What the doors of the ingress work with. */
export interface Ports {
  readonly policy: LivePolicy
  readonly store: LimitStore
  readonly identifier: Identifier
  readonly log: DecisionLog
  /** What upstreams answered. No count depends on it: what is not taken is only missed. */
  readonly outcomes: DecisionLog
  readonly clock: Clock
  /** Of the headers that tell of limits; draft 10 if left out. */
  readonly dialect?: RateLimitDialect | undefined
}
