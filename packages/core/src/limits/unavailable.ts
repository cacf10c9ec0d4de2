import type { Charged, Decision } from './decision.ts'
import type { LimitRequest } from './limit-store.ts'

/** When to try again while the store is gone: as long as a reconnect may take, so that waiting clients do not add to it. */
const unavailableRetryAfterMs = 1_000

/**
 * The decision when Redis did not give one. Refused only by an enforced limit that says `deny`; the first names the
 * denial. Limits that say `local` are for who stands around the store to hold to, and count as `allow` here. `charged`
 * is `no` only if the request certainly never counted.
 */
export function unavailableDecision(request: LimitRequest, charged: Charged): Decision {
  const denying = request.limits.find(({ mode, onUnavailable }) => mode === 'enforce' && onUnavailable === 'deny')
  return {
    allowed: denying === undefined,
    reason: 'unavailable',
    deniedBy: denying?.name ?? '',
    refusedBits: 0,
    shadowedBy: '',
    charged: request.peek ? 'no' : charged,
    retryAfterMs: denying === undefined ? 0 : unavailableRetryAfterMs,
    atUs: 0,
    repeats: '',
    limits: [],
  }
}
