import { decideModel, type ModelCell, type ModelLimit } from '@weir/core/algorithms/decide-model.ts'
import type { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { calendarOf, costOf, type LimitRequest, type LimitStore } from '@weir/core/limits/limit-store.ts'
import { LRUCache } from 'lru-cache'
import { limitKey } from '../keys.ts'

/*
 * Promises: while Redis does not answer, this process enforces a limit with `onUnavailable: local` at its share of the
 * size, max(1, floor(size / processes)). All processes together allow at most the size (or one unit each, if there are
 * more processes), in addition to what Redis had allowed in the same window. A limit with `deny` denies; limits with
 * `allow` are left out.
 *
 * Used units of a share count as long as the algorithm says, also after Redis is available again: an outage that comes
 * and goes does not allow a share each time. Counts go by this machine's clock. Refunds do not change them, Redis does
 * not get them, and they are lost with the process.
 */

/** Roughly 25 MB of counts. A flood of addresses evicts the callers that were quiet longest. */
const cellsMaxDefault = 100_000
/** A count takes about as much memory as so many stamps of a log. */
const stampsPerCell = 32
/** When to try again a cost that only Redis can allow: it may be available by then. */
const aboveShareRetryMs = 1_000

/** What the layer decides by. */
export interface LocalFallbackOptions {
  /** For local counts, and for finding calendar boundaries. */
  readonly clock: Clock
  readonly periodBoundaries: typeof periodBoundaries
  /** How many processes share the limits; see process-count.ts. */
  readonly processes: () => number
  readonly cellsMax?: number
}

/** Decides in this process what Redis did not answer, for limits with `onUnavailable: local`. */
export function createLocalFallback(inner: LimitStore, options: LocalFallbackOptions): LimitStore {
  const { clock, periodBoundaries, processes, cellsMax = cellsMaxDefault } = options
  const cells = new LRUCache<string, ModelCell>({ maxSize: cellsMax })
  /** Each limit cut to the share of one among so many processes. */
  const shareOf = new WeakMap<Limit, { readonly processes: number; readonly limit: Limit }>()

  function shareFor(limit: Limit): Limit {
    const count = Math.max(1, processes())
    const known = shareOf.get(limit)
    if (known?.processes === count) return known.limit
    const partOf = (units: number) => (units === 0 ? 0 : Math.max(1, Math.floor(units / count)))
    const share = { ...limit, size: partOf(limit.size), capacity: partOf(limit.capacity) }
    shareOf.set(limit, { processes: count, limit: share })
    return share
  }

  function modelOf(limit: Limit, request: LimitRequest, nowMs: number): ModelLimit {
    const { span } = limit
    const { timeZone, anchor } = calendarOf(limit, request)
    const boundaries = span.kind === 'period' ? periodBoundaries(span.unit, timeZone, anchor, nowMs) : undefined
    return { limit: shareFor(limit), key: limitKey(limit, request.scope), boundaries }
  }

  function decideHere(request: LimitRequest, unavailable: Decision): Decision {
    const { limits } = request
    // The inner store refuses for a limit that says `deny`, and for no other.
    const asked = unavailable.allowed ? limits.filter(({ onUnavailable }) => onUnavailable === 'local') : []
    if (asked.length === 0) return unavailable

    const nowMs = clock.nowMs()
    const models = asked.map((limit) => modelOf(limit, request, nowMs))
    const shares = models.map(({ limit }) => limit)
    const { decision, changes } = decideModel(cells, { ...request, limits: shares }, models, nowMs * 1_000)
    for (const [key, cell] of changes) cells.set(key, cell, { size: sizeOf(key, models, decision) })

    const found = {
      ...unavailable,
      source: 'local' as const,
      shadowedBy: decision.shadowedBy,
      repeats: decision.repeats,
      limits: decision.limits,
    }
    if (decision.allowed) return { ...found, deniedBy: decision.deniedBy }
    const lateRefund = unavailable.giveBack?.()
    const refused = lateRefund === undefined ? found : { ...found, lateRefund }
    const { reason, deniedBy } = decision
    // Above the share but not the size: only Redis can admit it.
    const fitsSize = reason === 'cost_exceeds_limit' && fitsCapacity(asked, deniedBy, request)
    if (fitsSize) return { ...refused, allowed: false, deniedBy, retryAfterMs: aboveShareRetryMs }
    const exceededMask = limits.reduce((bits, limit, at) => {
      const here = asked.indexOf(limit)
      return here >= 0 && (decision.exceededMask & (1 << here)) !== 0 ? bits + 2 ** at : bits
    }, 0)
    return { ...refused, allowed: false, reason, deniedBy, exceededMask, retryAfterMs: decision.retryAfterMs }
  }

  return {
    decide: (request) =>
      inner
        .decide(request)
        .then((decision) => (decision.reason === 'unavailable' ? decideHere(request, decision) : decision)),
    /** False for what was decided here. */
    refund: (request, charge) => (charge.atUs === 0 ? Promise.resolve(false) : inner.refund(request, charge)),
  }
}

const fitsCapacity = (limits: readonly Limit[], name: string, request: LimitRequest) =>
  limits.some((limit) => limit.name === name && costOf(limit, request) <= limit.capacity)

/** Of a log by the stamps that it has, not by those that it may have. */
function sizeOf(key: string, models: readonly ModelLimit[], { limits }: Pick<Decision, 'limits'>): number {
  const at = models.findIndex((one) => one.key === key)
  const model = models[at]
  const isLog = model !== undefined && algorithmFacts[model.limit.algorithm].keepsEachUnit
  return isLog ? 1 + Math.ceil((limits[at]?.used ?? 0) / stampsPerCell) : 1
}
