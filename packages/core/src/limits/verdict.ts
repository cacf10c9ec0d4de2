import type { Decision, LimitState, Reason } from './decision.ts'
import { admittedOver, markersName, refuses } from './exceeding.ts'
import type { Limit } from './limit.ts'
import { costOf, type LimitRequest } from './limit-store.ts'

/** How a request came out, by the numbers that lua/scripts/decide.lua replies with. */
export const verdicts = { allowed: 1, refused: 2, refusedForGood: 3, blocked: 4, repeated: 5, crowded: 6 } as const

const reasonOf = new Map<number, Reason>([
  [verdicts.allowed, 'ok'],
  [verdicts.refused, 'limit'],
  [verdicts.refusedForGood, 'cost_exceeds_limit'],
  [verdicts.blocked, 'blocked'],
  [verdicts.repeated, 'ok'],
  [verdicts.crowded, 'limit'],
])

/** What a script or the model found out about one request, before it is put in words. */
export interface Verdict {
  readonly verdict: number
  /** Limits that refused, or had no room and let it pass; bit 0 is the request's first limit. */
  readonly bits: number
  readonly waitMs: number
  readonly atUs: number
  readonly repeats: string
  readonly limits: readonly LimitState[]
}

function firstOf(request: LimitRequest, bits: number, is: (limit: Limit) => boolean): string | undefined {
  return request.limits.find((limit, at) => (bits & (1 << at)) !== 0 && is(limit))?.name
}

/** Names the limit that refused: the first, or for a cost that never fits, the first that is smaller than the cost. */
function deniedBy(request: LimitRequest, { verdict, bits }: Verdict): string {
  if (verdict === verdicts.crowded) return markersName
  const refusing = firstOf(
    request,
    bits,
    (limit) => refuses(limit) && (verdict !== verdicts.refusedForGood || limit.capacity < costOf(limit, request)),
  )
  if (refusing === undefined) throw new Error(`verdict ${verdict} with bits ${bits} names no limit`)
  return refusing
}

/** The decision that both the script's reply and the model come to. Throws for a verdict that this version does not know. */
export function decisionOf(request: LimitRequest, found: Verdict): Decision {
  const { verdict, bits, waitMs, atUs, repeats, limits } = found
  const reason = reasonOf.get(verdict)
  if (reason === undefined) throw new Error(`unknown verdict ${verdict} in the reply of decide.lua`)
  const allowed = reason === 'ok'
  const told = allowed
    ? admittedOver(request.limits, bits)
    : { reason, deniedBy: deniedBy(request, found), shadowedBy: '' }
  const decision: Decision = {
    allowed,
    reason: told.reason,
    deniedBy: told.deniedBy,
    refusedBits: bits,
    shadowedBy: told.shadowedBy,
    charged: verdict === verdicts.allowed && !request.peek ? 'yes' : 'no',
    retryAfterMs: waitMs,
    atUs,
    repeats,
    limits,
  }
  // No limit ends a flood of these, so equal ones of a second are one record.
  return verdict === verdicts.crowded ? { ...decision, isRemembered: true } : decision
}
