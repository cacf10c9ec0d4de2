import { countsInFlight } from './algorithm-facts.ts'
import type { Decision, LimitState, Reason } from './decision.ts'
import { admittedOver, markersName, refuses } from './exceeding.ts'
import type { Limit } from './limit.ts'
import { chargedLimits, costOf, type HeldSlots, type LimitRequest } from './limit-store.ts'
import { statuses } from './script-protocol.ts'

const reasonOf = new Map<number, Reason>([
  [statuses.ALLOWED, 'ok'],
  [statuses.DENIED, 'limit'],
  [statuses.COST_EXCEEDS_CAPACITY, 'cost_exceeds_limit'],
  [statuses.BLOCKED, 'blocked'],
  [statuses.REPLAYED, 'ok'],
  [statuses.TOO_MANY_MARKERS, 'limit'],
])

/** How the script or the model decided one request, before it is a `Decision`. */
export interface RawDecision {
  /** Of `statuses`. */
  readonly status: number
  /**
   * Limits that refused, or had no capacity and let it pass; bit 0 is the request's first limit. Of a repeat 1 if the
   * first asked something else.
   */
  readonly bits: number
  readonly waitMs: number
  readonly atUs: number
  readonly repeats: string
  readonly limits: readonly LimitState[]
}

const firstOf = (request: LimitRequest, bits: number, is: (limit: Limit) => boolean): string | undefined =>
  request.limits.find((limit, at) => (bits & (1 << at)) !== 0 && is(limit))?.name

/** Names the limit that refused: the first, or for a cost that never fits, the first that is smaller than the cost. */
function deniedBy(request: LimitRequest, { status, bits }: RawDecision): string {
  if (status === statuses.TOO_MANY_MARKERS) return markersName
  const refusing = firstOf(
    request,
    bits,
    (limit) => refuses(limit) && (status !== statuses.COST_EXCEEDS_CAPACITY || limit.capacity < costOf(limit, request)),
  )
  if (refusing === undefined) throw new Error(`status ${status} with bits ${bits} names no limit`)
  return refusing
}

function hold(request: LimitRequest, decision: Decision, { ms, taken }: HeldSlots): void {
  const limits = chargedLimits(request, decision).filter(countsInFlight)
  const { scope, timeZone, anchor } = request
  const asked = { scope, timeZone, anchor, slots: { ms }, limits, cost: 1, peek: false }
  if (limits.length > 0) taken?.push({ request: asked, atUs: decision.atUs })
}

/** Builds the decision from what the script or the model found. Throws for a status that this version does not know. */
export function decisionOf(request: LimitRequest, found: RawDecision): Decision {
  const { status, waitMs, atUs, repeats, limits } = found
  const isRepeat = status === statuses.REPLAYED
  const bits = isRepeat ? 0 : found.bits
  const reason = reasonOf.get(status)
  if (reason === undefined) throw new Error(`unknown status ${status} in the reply of decide.lua`)
  const allowed = reason === 'ok'
  const told = allowed
    ? admittedOver(request.limits, bits)
    : { reason, deniedBy: deniedBy(request, found), shadowedBy: '' }
  const decision: Decision = {
    allowed,
    reason: told.reason,
    deniedBy: told.deniedBy,
    exceededMask: bits,
    shadowedBy: told.shadowedBy,
    charged: status === statuses.ALLOWED && !request.peek ? 'yes' : 'no',
    retryAfterMs: waitMs,
    atUs,
    repeats,
    limits,
  }
  if (request.slots?.taken !== undefined && decision.charged === 'yes') hold(request, decision, request.slots)
  if (isRepeat && found.bits !== 0) return { ...decision, isOtherQuestion: true }
  // No limit ends a flood of these, so equal ones of a second are one record.
  return status === statuses.TOO_MANY_MARKERS ? { ...decision, isCached: true } : decision
}
