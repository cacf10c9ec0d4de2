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
    'ts_ms' | 'plan' | 'cost' | 'count' | 'outcome' | 'reason' | 'mode' | 'charged' | 'denied_by' | 'shadowed_by'
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

/** A recorded limit with what the policy said about it, and its part in the decision. */
export interface JudgedLimit extends RecordedLimit {
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

/** Whether the wait of a refusal is a guess: nobody knows when another request in flight ends. */
export const isGuess = (judged: readonly JudgedLimit[]): boolean =>
  judged.some(({ refused, met }) => refused && met !== undefined && countsInFlight(met.limit))

/** Returns the limits of a decision, with what refused it. */
export function judgeLimits(decision: RecordedDecision, policy: PolicyFacts | undefined): readonly JudgedLimit[] {
  const { cost, reason, denied_by: deniedBy, limits } = decision
  const isRefusal = isCountedRefusal(decision)
  return limits.map((limit): JudgedLimit => {
    const known = policy?.limits.find(({ limit: { name } }) => name === limit.name)
    const met = known?.limit.capacity === limit.size ? known : undefined
    const needed = met === undefined ? cost : costOf(met.limit, decision)
    const lacks = reason === 'blocked' ? isBlocked(limit) : needed > (freeOf(limit) ?? needed)
    const mayRefuse = met !== undefined && refuses(met.limit)
    return { ...limit, met, needed, refused: isRefusal && (limit.name === deniedBy || (mayRefuse && lacks)) }
  })
}
