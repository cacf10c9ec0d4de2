import type { Decision, LimitState } from '../decision.ts'
import type { Limit } from '../limit.ts'

/** A limit of 100 a minute by subject, but for what is given. */
export function limit(given: Partial<Limit>): Limit {
  const span = { kind: 'window', ms: 60_000 } as const
  const by = [{ kind: 'subject' }] as const
  const plain = { applies: 'plan', mode: 'enforce', onUnavailable: 'allow', thresholds: [] } as const
  const onExceed = { kind: 'deny' } as const
  const numbers = { size: 100, capacity: 100, blockMs: 0, lease: 0, cooldownMs: 0 }
  return { name: 'minute', algorithm: 'fixed_window', span, by, onExceed, ...numbers, ...plain, ...given }
}

/** That limit with 13 units used and 40.001 s to go, but for what is given. */
export function state(given: Partial<LimitState>): LimitState {
  return { name: 'minute', size: 100, used: 13, remaining: 87, resetMs: 40_001, ...given }
}

/** Allowed under that one limit, but for what is given. */
export function decision(given: Partial<Decision>): Decision {
  const outcome = { allowed: true, reason: 'ok', deniedBy: '', charged: 'yes', retryAfterMs: 0 } as const
  return { ...outcome, exceededMask: 0, shadowedBy: '', atUs: 0, repeats: '', limits: [state({})], ...given }
}
