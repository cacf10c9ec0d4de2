import { denied } from '@weir/core/limits/decision.ts'

/** A stale policy may be confirmed at any second. */
const staleRetryMs = 5_000

/** Denies a request without a valid credential. */
export const unauthorized = denied('unauthorized', { source: 'none', isCached: true })

/** Denies a request whose token cannot be verified at the moment. */
export const unverified = denied('unavailable', { source: 'none', isCached: true })

/** Denies everything while it is not known whether the policy is still in force, and so whose credentials are valid. */
export const policyStale = denied('unavailable', { source: 'none', isCached: true, retryAfterMs: staleRetryMs })
