import { decideModel, type ModelCell, type ModelLimit, settleModel } from '@weir/core/algorithms/decide-model.ts'
import type { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, ScopeValues } from '@weir/core/limits/limit-store.ts'
import { chargedLimits } from '@weir/core/limits/limit-store.ts'

/** A recorded request as other limits are to decide it. */
export interface ReplayedRequest extends Pick<LimitRequest, 'scope' | 'cost' | 'limits' | 'timeZone' | 'anchor'> {
  /** Milliseconds since the epoch; never less than of the request before. */
  readonly atMs: number
  /** Equal requests of this moment; at least 1. */
  readonly count: number
}

/** How limits decide equal requests of one moment. */
export interface Replayed {
  /** How many were refused, by the limit that refused them. */
  readonly refused: ReadonlyMap<string, number>
  /** The decision of the first one, for `correct`. */
  readonly first: Decision
}

/** What a replay takes from outside. */
export interface ReplayParts {
  /** Where a limit counts for these values. */
  readonly keyOf: (limit: Limit, scope: ScopeValues) => string
  readonly periodBoundaries: ReturnType<typeof createBoundaryCache>
}

/**
 * Decides requests one after the other as decide.lua would on a Redis of their own, which is empty before the first:
 * every limit of a request is charged, or none.
 */
export class Replay {
  readonly #parts: ReplayParts
  readonly #cells = new Map<string, ModelCell>()

  constructor(parts: ReplayParts) {
    this.#parts = parts
  }

  decide({ atMs, count, ...asked }: ReplayedRequest): Replayed {
    const request: LimitRequest = { ...asked, peek: false }
    const limits = this.#limitsOf(asked, atMs)
    const refused = new Map<string, number>()
    const one = () => {
      const { decision, changes } = decideModel(this.#cells, request, limits, atMs * 1_000)
      for (const [key, cell] of changes) this.#cells.set(key, cell)
      return decision
    }
    const first = one()
    let decision = first
    let refusals = 0
    for (let at = 0; at < count; at += 1) {
      if (at > 0) decision = one()
      if (decision.allowed) continue
      refusals += 1
      // The first refusal may set a block. After the second nothing changes any more.
      const equal = refusals < 2 ? 1 : count - at
      refused.set(decision.deniedBy, (refused.get(decision.deniedBy) ?? 0) + equal)
      if (refusals === 2) break
    }
    return { refused, first }
  }

  /** Charges an admitted request so many units more, or less below 0, as its correction did. */
  correct(request: ReplayedRequest, decision: Decision, units: number, nowMs: number): void {
    const asked = { ...request, peek: false }
    const charged = new Set(chargedLimits(asked, decision))
    const limits = this.#limitsOf(request, nowMs).filter(({ limit }) => charged.has(limit))
    const { changes } = settleModel(this.#cells, limits, { request: asked, units, atUs: decision.atUs }, nowMs * 1_000)
    for (const [key, cell] of changes) this.#cells.set(key, cell)
  }

  #limitsOf(
    { limits, scope, timeZone, anchor }: Omit<ReplayedRequest, 'atMs' | 'count' | 'cost'>,
    nowMs: number,
  ): readonly ModelLimit[] {
    const { keyOf, periodBoundaries } = this.#parts
    return limits.map((limit) => {
      const { span } = limit
      const boundaries = span.kind === 'period' ? periodBoundaries(span.unit, timeZone, anchor, nowMs) : undefined
      return { limit, key: keyOf(limit, scope), boundaries }
    })
  }
}
