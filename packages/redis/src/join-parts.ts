import type { Decision, LimitState, Reason } from '@weir/core/limits/decision.ts'
import { admittedOver } from '@weir/core/limits/exceeding.ts'
import type { Charge, LimitRequest } from '@weir/core/limits/limit-store.ts'

/** Those of a request's limits whose keys are in one slot. */
export interface SlotPart {
  readonly slot: number
  /** Which of the whole request's limits these are, ascending. */
  readonly positions: readonly number[]
  /** The subject's limits, or if there are none the first. It alone carries the idempotency key. */
  readonly isHome: boolean
  readonly request: LimitRequest
}

/** How the limits of one slot decided. */
export interface PartDecision {
  readonly part: SlotPart
  readonly decision: Decision
}

/** As in lua/scripts/decide.lua: what will never fit comes before a block, a block before a limit. */
const precedence: readonly Reason[] = ['cost_exceeds_limit', 'blocked', 'limit']

/** Translates the mask of a part to the positions of the whole request. */
export const wholeMask = (bits: number, positions: readonly number[]) =>
  positions.reduce((sum, position, at) => ((bits & (1 << at)) === 0 ? sum : sum | (1 << position)), 0)

/** The charge of a whole request, as one of its parts saw it. */
export function partCharge({ positions }: Pick<SlotPart, 'positions'>, { atUs, exceededMask }: Charge): Charge {
  const bits = positions.reduce(
    (sum, position, at) => ((exceededMask & (1 << position)) === 0 ? sum : sum | (1 << at)),
    0,
  )
  return { atUs, exceededMask: bits }
}

/** The refusal that stands for all of them. */
function foremost(refused: readonly PartDecision[], request: LimitRequest): Decision | undefined {
  const rank = ({ decision }: PartDecision) => precedence.indexOf(decision.reason)
  const index = ({ decision }: PartDecision) => request.limits.findIndex(({ name }) => name === decision.deniedBy)
  return [...refused].sort((a, b) => rank(a) - rank(b) || index(a) - index(b))[0]?.decision
}

/** One decision out of those over its parts, none of which may be missing or unavailable. */
export function joinParts(request: LimitRequest, parts: readonly PartDecision[]): Decision {
  const states = new Map<number, LimitState>()
  let exceededMask = 0
  for (const { part, decision } of parts) {
    for (const [at, state] of decision.limits.entries()) states.set(part.positions[at] ?? 0, state)
    exceededMask |= wholeMask(decision.exceededMask, part.positions)
  }
  const refused = parts.filter(({ decision }) => !decision.allowed)
  const refusal = foremost(refused, request)
  const waits = refused.map(({ decision }) => decision.retryAfterMs)
  const atHome = (parts.find(({ part }) => part.isHome) ?? parts[0])?.decision
  const admitted = admittedOver(request.limits, exceededMask)
  return {
    allowed: refusal === undefined,
    reason: refusal?.reason ?? admitted.reason,
    deniedBy: refusal?.deniedBy ?? admitted.deniedBy,
    exceededMask,
    shadowedBy: refusal === undefined ? admitted.shadowedBy : '',
    charged: refusal === undefined && parts.every(({ decision }) => decision.charged === 'yes') ? 'yes' : 'no',
    retryAfterMs: refusal === undefined || refusal.reason === 'cost_exceeds_limit' ? 0 : Math.max(...waits),
    atUs: atHome?.atUs ?? 0,
    repeats: atHome?.repeats ?? '',
    ...(atHome?.isOtherQuestion && { isOtherQuestion: true }),
    limits: request.limits.flatMap((_, at) => states.get(at) ?? []),
  }
}
