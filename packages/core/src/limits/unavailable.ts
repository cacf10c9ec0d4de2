import { allowed, type Charged, type Decision, denied } from './decision.ts'
import type { LimitRequest } from './limit-store.ts'

/** When to retry while Redis is down: as long as a reconnect may take, so that waiting clients do not add to it. */
const unavailableRetryAfterMs = 1_000

/**
 * The decision when Redis did not give one. Refused only by an enforced limit that says `deny`; the first names the
 * denial. Limits that say `local` are enforced by the layer of the local fallback, and count as `allow` here. `charged`
 * is `no` only if the request certainly never counted.
 */
export function unavailableDecision(request: LimitRequest, charged: Charged): Decision {
  const denying = request.limits.find(({ mode, onUnavailable }) => mode === 'enforce' && onUnavailable === 'deny')
  const known = { charged: request.peek ? 'no' : charged, source: 'unavailable' } as const
  if (denying === undefined) return allowed('unavailable', known)
  return denied('unavailable', { ...known, deniedBy: denying.name, retryAfterMs: unavailableRetryAfterMs })
}
