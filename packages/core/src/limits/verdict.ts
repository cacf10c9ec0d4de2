import type { Decision, LimitState, Reason } from './decision.ts'
import type { LimitRequest } from './limit-store.ts'

/** How a request came out, by the numbers that lua/scripts/decide.lua replies with. 4 is reserved for blocked subjects. */
export const verdicts = { allowed: 1, refused: 2, refusedForGood: 3 } as const

const reasonOf = new Map<number, Reason>([
  [verdicts.allowed, 'ok'],
  [verdicts.refused, 'limit'],
  [verdicts.refusedForGood, 'cost_exceeds_limit'],
])

/** What a script or the model found out about one request, before it is put in words. */
export interface Verdict {
  readonly verdict: number
  /** Bit 0 is the request's first limit. */
  readonly refusedBits: number
  readonly waitMs: number
  readonly limits: readonly LimitState[]
}

/** Names the limit that refused: the first, or for a cost that never fits, the first that is smaller than the cost. */
function deniedBy(request: LimitRequest, { verdict, refusedBits }: Verdict): string {
  const refusing = request.limits.find(
    (limit, at) =>
      (refusedBits & (1 << at)) !== 0 && (verdict !== verdicts.refusedForGood || limit.size < request.cost),
  )
  if (refusing === undefined) throw new Error(`verdict ${verdict} with bits ${refusedBits} names no limit`)
  return refusing.name
}

/** The decision that both the script's reply and the model come to. Throws for a verdict that this version does not know. */
export function decisionOf(request: LimitRequest, found: Verdict): Decision {
  const reason = reasonOf.get(found.verdict)
  if (reason === undefined) throw new Error(`unknown verdict ${found.verdict} in the reply of decide.lua`)
  const allowed = found.verdict === verdicts.allowed
  return {
    allowed,
    reason,
    deniedBy: allowed ? '' : deniedBy(request, found),
    charged: allowed && !request.peek ? 'yes' : 'no',
    retryAfterMs: found.waitMs,
    limits: found.limits,
  }
}
