import type { Clock } from '@weir/core/clock.ts'
import { type Decision, denied } from '@weir/core/limits/decision.ts'
import type { Subject } from '@weir/policy/policy.ts'
import type { DecisionRequest } from '../types.ts'

/** A stale policy may be confirmed at any second. */
const staleRetryMs = 5_000

/** Denies a request without a valid credential. */
export const unauthorized = denied('unauthorized', { source: 'none', isCached: true })

/** Denies a request whose token cannot be verified at the moment. */
export const unverified = denied('unavailable', { source: 'none', isCached: true })

/** Denies everything while it is not known whether the policy is still in force, and so whose credentials are valid. */
export const policyStale = denied('unavailable', { source: 'none', isCached: true, retryAfterMs: staleRetryMs })

const withoutRedis = { source: 'none', isCached: true } as const

/** What a person has said of the caller: its denial, `exempt` for an address of which none counts, or nothing. */
export function byHand(ask: DecisionRequest, clock: Pick<Clock, 'nowMs'>): Decision | 'exempt' | undefined {
  const { view } = ask
  // A subject is suspended along with those above it.
  for (let subject: Subject | undefined = ask.subject; subject !== undefined; subject = subject.parent) {
    if (subject.suspended === undefined) continue
    return denied('blocked', { ...withoutRedis, byHand: { kind: 'suspended', reason: subject.suspended } })
  }
  if (view.manualBlocks.size === 0) return undefined
  const nowMs = clock.nowMs()
  const block = view.manualBlocks.of(ask, nowMs)
  if (block === undefined) return undefined
  if (block.isExempt) return 'exempt'
  return denied('blocked', { ...withoutRedis, retryAfterMs: block.untilMs - nowMs, byHand: { kind: 'blocked' } })
}
