import { algorithmModels } from '../algorithms/models.ts'
import type { Limit, PeriodBoundaries } from '../limits/limit.ts'

/** An admitted request as its client saw it: it was decided at one of these milliseconds of the limit's own clock. */
export interface Admission {
  readonly fromMs: number
  readonly toMs: number
  readonly cost: number
}

/** The first request that the limit could not have admitted, and how many did not fit in all. */
export interface Breach {
  /** The latest time at which it was decided. */
  readonly atMs: number
  /** Units that were used by then, at the least. */
  readonly used: number
  readonly cost: number
  readonly requests: number
  readonly units: number
}

/** What is checked: a limit with the calendar of its count. */
export interface HeldLimit extends Pick<Limit, 'algorithm' | 'size' | 'capacity' | 'span'> {
  /** The periods around a time, of a limit with a calendar period. */
  readonly boundariesAt: (ms: number) => PeriodBoundaries | undefined
}

/**
 * Charges the admissions in their order, each at the earliest time at which it fits. That leaves the most capacity for
 * those after it, because no later one may be charged before it: what does not fit then fits in no way.
 */
function replay(limit: HeldLimit, admissions: readonly Admission[], isDivisible: boolean): Breach | undefined {
  const model = algorithmModels[limit.algorithm]
  let state: object | undefined
  let nowMs = Number.NEGATIVE_INFINITY
  let breach: Breach | undefined
  const planAt = (cost: number) =>
    model.plan(state, { ...limit, boundaries: limit.boundariesAt(nowMs) }, cost, nowMs * 1_000)
  for (const { fromMs, toMs, cost } of admissions) {
    nowMs = Math.max(nowMs, fromMs)
    let left = cost
    while (left > 0) {
      const part = isDivisible ? Math.max(1, Math.min(left, planAt(0).remaining)) : left
      const { waitMs, next, used } = planAt(part)
      if (waitMs === 0) {
        state = next
        left -= part
      } else if (waitMs > 0 && nowMs + waitMs - 1 <= toMs) {
        nowMs += waitMs // rounded up by less than a millisecond
      } else {
        const { requests, units, ...first } = breach ?? { atMs: toMs, used, cost, requests: 0, units: 0 }
        breach = { ...first, requests: requests + 1, units: units + left }
        break
      }
    }
  }
  return breach
}

/** Sorts by when each was decided at the latest, and widens what was sent before an earlier one: then both agree. */
function inOrder(admissions: readonly Admission[]): readonly Admission[] {
  const sorted = admissions.toSorted((a, b) => a.toMs - b.toMs)
  let fromMs = Number.POSITIVE_INFINITY
  for (let at = sorted.length - 1; at >= 0; at -= 1) {
    const one = sorted[at]
    if (one === undefined) continue
    fromMs = Math.min(fromMs, one.fromMs)
    if (fromMs < one.fromMs) sorted[at] = { ...one, fromMs }
  }
  return sorted
}

/**
 * Says whether one count of a limit can have admitted all of these by its own definition. A breach is a proof: whenever
 * between sending and answer each was decided, and whatever else the limit had counted, they do not fit. Undefined says
 * that there is no such proof: too much by less than what the answers' times leave open is not seen.
 *
 * Where costs differ, a request may be charged in parts, because which of them fit together is a puzzle.
 */
export function checkHeld(limit: HeldLimit, admissions: readonly Admission[]): Breach | undefined {
  const [first] = admissions
  const isDivisible = admissions.some(({ cost }) => cost !== first?.cost)
  return replay(limit, inOrder(admissions), isDivisible)
}
