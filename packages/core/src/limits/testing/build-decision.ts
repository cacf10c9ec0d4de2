import type { Decision, LimitState } from '../decision.ts'
import type { Limit } from '../limit.ts'
import { buildLimit } from './build-limit.ts'

/** A limit of 100 a minute by subject, but for what is given. */
export const limit = (given: Partial<Limit>): Limit => buildLimit({ size: 100, capacity: 100, ...given })

/** That limit with 13 units used and 40.001 s to go, but for what is given. */
export function state(given: Partial<LimitState>): LimitState {
  return { name: 'minute', size: 100, used: 13, remaining: 87, resetMs: 40_001, ...given }
}

/** Allowed under that one limit, but for what is given. */
export function decision(given: Partial<Decision>): Decision {
  const outcome = { allowed: true, reason: 'ok', deniedBy: '', charged: 'yes', retryAfterMs: 0 } as const
  return { ...outcome, exceededMask: 0, shadowedBy: '', atUs: 0, repeats: '', limits: [state({})], ...given }
}
