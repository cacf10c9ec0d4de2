import { decideModel, type ModelCell, type ModelLimit } from '@weir/core/algorithms/decide-model.ts'
import type { Clock } from '@weir/core/clock.ts'
import { checkLimitRequest, unlimitedDecision } from '@weir/core/limits/check-limit-request.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import type { periodBoundaries } from '@weir/core/policy/calendar.ts'
import { limitKey } from './keys.ts'

export interface MemoryLimitStoreOptions {
  readonly clock: Clock
  readonly periodBoundaries: typeof periodBoundaries
}

/** Decides like Redis, in this process alone and without forgetting anything: for tests of what stands in front of a store. */
export const createMemoryLimitStore = (options: MemoryLimitStoreOptions): LimitStore => new MemoryLimitStore(options)

class MemoryLimitStore implements LimitStore {
  readonly #clock: Clock
  readonly #boundaries: typeof periodBoundaries
  readonly #cells = new Map<string, ModelCell>()

  constructor(options: MemoryLimitStoreOptions) {
    this.#clock = options.clock
    this.#boundaries = options.periodBoundaries
  }

  async decide(request: LimitRequest): Promise<Decision> {
    checkLimitRequest(request)
    if (request.limits.length === 0) return unlimitedDecision
    const nowMs = this.#clock.nowMs()
    const limits = request.limits.map((limit): ModelLimit => {
      const { span } = limit
      const boundaries =
        span.kind === 'period' ? this.#boundaries(span.unit, request.timeZone, request.anchor, nowMs) : undefined
      return { limit, key: limitKey(limit, request.scope), boundaries }
    })
    const { decision, changes } = decideModel(this.#cells, request, limits, nowMs)
    for (const [key, cell] of changes) this.#cells.set(key, cell)
    return decision
  }
}
