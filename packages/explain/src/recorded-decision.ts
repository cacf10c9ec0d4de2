import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Reason } from '@weir/core/limits/decision.ts'
import { blockMsMaxOf, refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { costOf } from '@weir/core/limits/limit-store.ts'

/** One limit as a decision's record has it. */
export interface RecordedLimit extends Omit<StoredDecision['limits'][number], 'used' | 'remaining'> {
  /** Undefined where the reader may not know it, because others share the count. */
  readonly used: number | undefined
  /** 0 during a block, whatever `used` says. */
  readonly remaining: number | undefined
}

/** A decision as it was recorded. */
export interface RecordedDecision
  extends Pick<
    StoredDecision,
    | 'ts_ms'
    | 'plan'
    | 'cost'
    | 'count'
    | 'outcome'
    | 'reason'
    | 'mode'
    | 'charged'
    | 'denied_by'
    | 'shadowed_by'
    | 'held'
    | 'units'
  > {
  readonly limits: readonly RecordedLimit[]
  /** The promised wait; -1 where waiting does not help; undefined for an admission, and in older records. */
  readonly retry_ms: number | undefined
  /** Of a correction: the decision that it corrects, and by how many units. */
  readonly correction: { readonly corrects: string; readonly adjustment: number } | undefined
}

/** A limit that the policy had for the request, and why. */
export interface MetLimit {
  /** In the subject's own version, if it had one. */
  readonly limit: Limit
  readonly because: readonly string[]
}

/** What the policy was for a request, as far as it is known. */
export interface PolicyFacts {
  /** In the order in which they decide. */
  readonly limits: readonly MetLimit[]
  /** What the same subject's request would meet under each plan. */
  readonly plans: readonly { readonly name: string; readonly limits: readonly Limit[] }[]
  /** Why the subject was suspended; undefined if it was not. */
  readonly suspended?: string | undefined
}

/** A recorded limit with what the policy said about it, and its part in the decision. What is held counts as used. */
export interface JudgedLimit extends RecordedLimit {
  /** Units of `used` that were only held. */
  readonly held: number
  /** Undefined where the policy of then is not known, or has no such limit of this size. */
  readonly met: MetLimit | undefined
  /** Units that the request needed of it. */
  readonly needed: number
  /** Whether it alone would have refused the request. */
  readonly refused: boolean
}

/** Units that were free by the count, whether a block kept them back or not; undefined where it is not known. */
export const freeOf = ({ size, used }: RecordedLimit): number | undefined =>
  used === undefined ? undefined : Math.max(0, size - used)

/** Refusals that the counts of limits explain. */
const countedReasons: readonly Reason[] = ['limit', 'blocked', 'cost_exceeds_limit']

/** Whether a decision was a refusal that the counts of its limits explain. */
export const isCountedRefusal = ({ outcome, reason }: RecordedDecision): boolean =>
  outcome === 'deny' && countedReasons.includes(reason)

/** Whether a block kept units back that were free. */
const isBlocked = (limit: RecordedLimit) => limit.remaining === 0 && (freeOf(limit) ?? 0) > 0

/** Whether a block may have stood when the decision was made, so that the count alone does not say what was free. */
export const mayBeBlocked = (limit: JudgedLimit, { reason }: RecordedDecision): boolean => {
  // A refusal by the count alone sets the block that its record shows.
  if (reason === 'limit' || limit.remaining !== 0) return false
  return isBlocked(limit) || limit.met === undefined || blockMsMaxOf(limit.met.limit) > 0
}

/** Whether the wait of a refusal is a guess: nobody knows when another request in flight ends, or what it will use. */
export const isGuess = (judged: readonly JudgedLimit[]): boolean =>
  judged.some(({ refused, met, held }) => refused && (held > 0 || (met !== undefined && countsInFlight(met.limit))))

/** What is neither used nor left is held, of a limit that has no block to keep it back. */
function heldOf({ size, used = 0, remaining = 0 }: RecordedLimit, { unit, span, ...limit }: Limit): number {
  const mayHold = unit !== undefined && unit !== 'requests' && span.kind === 'period'
  return mayHold && blockMsMaxOf({ ...limit, span }) === 0 ? Math.max(0, size - used - remaining) : 0
}

/** Returns the limits of a decision, with what refused it. */
export function judgeLimits(decision: RecordedDecision, policy: PolicyFacts | undefined): readonly JudgedLimit[] {
  const { cost, reason, denied_by: deniedBy, limits } = decision
  const isRefusal = isCountedRefusal(decision)
  const units = new Map([...Object.entries(decision.held), ...Object.entries(decision.units)])
  return limits.map((recorded): JudgedLimit => {
    const known = policy?.limits.find(({ limit: { name } }) => name === recorded.name)
    const met = known?.limit.capacity === recorded.size ? known : undefined
    const held = met === undefined || recorded.used === undefined ? 0 : heldOf(recorded, met.limit)
    const limit = held === 0 ? recorded : { ...recorded, used: (recorded.used ?? 0) + held }
    const needed = met === undefined ? cost : costOf(met.limit, { cost, units })
    const lacks = reason === 'blocked' ? isBlocked(limit) : needed > (freeOf(limit) ?? needed)
    const mayRefuse = met !== undefined && refuses(met.limit)
    return { ...limit, held, met, needed, refused: isRefusal && (limit.name === deniedBy || (mayRefuse && lacks)) }
  })
}
