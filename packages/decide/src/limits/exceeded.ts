import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit, OnExceed } from '@weir/core/limits/limit.ts'

/**
 * Requests beyond a limit since the start, by what was done in the end. Those that waited are also counted as `delay`.
 */
export type ExceededCounts = Record<OnExceed['kind'], number>

/**
 * Returns what the policy wants done with a request beyond a limit: what the limit that the decision names says.
 * Undefined where no limit was exceeded, or where something else denied the request.
 */
export function onExceedOf(
  { allowed, reason, deniedBy }: Decision,
  limits: readonly Limit[] | undefined,
): OnExceed | undefined {
  if (deniedBy === '' || (!allowed && reason !== 'limit' && reason !== 'blocked')) return undefined
  return limits?.find(({ name }) => name === deniedBy)?.onExceed
}

/** Returns the name of the limit that only degraded a request that exceeded it; empty for none. */
export const degradedBy = ({ allowed, deniedBy }: Decision): string => (allowed ? deniedBy : '')

/** Counts what was done with a request. A denial by a limit that delays counts as `deny`: the wait is over. */
export function countExceeded(counts: ExceededCounts, decision: Decision, limits: readonly Limit[]): void {
  const { kind = undefined } = onExceedOf(decision, limits) ?? {}
  if (kind !== undefined) counts[kind === 'delay' ? 'deny' : kind] += 1
}
