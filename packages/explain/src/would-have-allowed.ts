import type { Remedy } from '@weir/api/decisions.ts'
import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { costOf } from '@weir/core/limits/limit-store.ts'
import {
  freeOf,
  isCountedRefusal,
  isGuess,
  type JudgedLimit,
  mayBeBlocked,
  type PolicyFacts,
  type RecordedDecision,
} from './recorded-decision.ts'

const assuming = (names: readonly string[]): Pick<Remedy, 'assumed_unused'> =>
  names.length === 0 ? {} : { assumed_unused: names }

/** Limits that refuse and that the record does not have, if the cost fits them at all; undefined if it does not. */
function unmet(limits: readonly Limit[], judged: readonly JudgedLimit[], cost: number): readonly string[] | undefined {
  const missing = limits.filter((one) => refuses(one) && !judged.some(({ name }) => name === one.name))
  return missing.some((one) => costOf(one, { cost }) > one.capacity) ? undefined : missing.map(({ name }) => name)
}

function byCost(refused: readonly JudgedLimit[], assumed: readonly string[]): readonly Remedy[] {
  // A limit that counts another unit takes as much, whatever the cost.
  const free = refused.map((limit) => (limit.met?.limit.unit === undefined ? (freeOf(limit) ?? 0) : 0))
  const most = Math.min(...free)
  return most > 0 ? [{ how: 'cost', at_most: most, ...assuming(assumed) }] : []
}

function bySize(refused: readonly JudgedLimit[], assumed: readonly string[]): readonly Remedy[] {
  const sizes = refused.map(({ name, used, met, needed }) => {
    const atLeast = used === undefined || met === undefined ? Number.NaN : used + needed
    const hasBurst = met !== undefined && algorithmFacts[met.limit.algorithm].hasBurst
    return { name, atLeast, how: hasBurst ? ('burst' as const) : ('size' as const) }
  })
  if (sizes.some(({ atLeast }) => !Number.isSafeInteger(atLeast))) return []
  return sizes.map(({ name, atLeast, how }): Remedy => {
    const others = sizes.map((one) => one.name).filter((one) => one !== name)
    const together = others.length === 0 ? {} : { together_with: others }
    return { how, limit: name, at_least: atLeast, ...together, ...assuming(assumed) }
  })
}

function byPlan(
  { cost, plan }: RecordedDecision,
  judged: readonly JudgedLimit[],
  { plans }: PolicyFacts,
): readonly Remedy[] {
  return plans.flatMap(({ name, limits }): readonly Remedy[] => {
    if (name === plan) return []
    const refusing = limits.filter(refuses)
    // A count goes by the name of its limit: the same limit refuses under any plan that has it.
    const fits = refusing.every(({ name: limit }) => {
      const known = judged.find((one) => one.name === limit)
      if (known === undefined) return true
      const { needed, remaining = -1 } = known
      return !known.refused && needed <= (freeOf(known) ?? -1) && needed <= remaining
    })
    const assumed = fits ? unmet(refusing, judged, cost) : undefined
    return assumed === undefined ? [] : [{ how: 'plan', plan: name, ...assuming(assumed) }]
  })
}

/**
 * Returns each change by which a refused request would have been admitted. It says nothing that the record and the
 * policy do not show: without the policy of then, neither sizes nor plans.
 */
export function wouldHaveAllowed(
  decision: RecordedDecision,
  judged: readonly JudgedLimit[],
  policy: PolicyFacts | undefined,
): readonly Remedy[] {
  if (!isCountedRefusal(decision)) return []
  const { reason, retry_ms: retryMs = 0, cost } = decision
  const refused = judged.filter((one) => one.refused)
  const mayWait = retryMs > 0 && reason !== 'cost_exceeds_limit' && !isGuess(judged)
  const wait: readonly Remedy[] = mayWait ? [{ how: 'wait', ms: retryMs }] : []
  const isKnown = refused.length > 0 && refused.every(({ used }) => used !== undefined)
  // During a block neither fewer units nor a larger limit helps.
  const byCount = reason !== 'blocked' && isKnown && !judged.some((one) => mayBeBlocked(one, decision))
  const isExact = refused.length > 0 && judged.every((one) => one.met !== undefined)
  const met = policy?.limits.map(({ limit }) => limit) ?? []
  const assumed = unmet(met, judged, 0) ?? []
  const fitting = unmet(met, judged, cost)
  return [
    ...wait,
    ...(byCount ? byCost(refused, assumed) : []),
    ...(byCount && policy !== undefined && fitting !== undefined ? bySize(refused, fitting) : []),
    ...(policy !== undefined && isExact ? byPlan(decision, judged, policy) : []),
  ]
}
