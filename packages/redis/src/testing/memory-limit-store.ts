import {
  decideModel,
  type ModelCell,
  type ModelLimit,
  pauseModel,
  refundModel,
} from '@weir/core/algorithms/decide-model.ts'
import type { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import {
  type Charge,
  calendarOf,
  checkLimitRequest,
  type LimitRequest,
  type LimitStore,
  type ScopeValues,
  unlimitedDecision,
} from '@weir/core/limits/limit-store.ts'
import { limitKey } from '../keys.ts'

interface MemoryLimitStoreOptions {
  readonly clock: Clock
  readonly periodBoundaries: typeof periodBoundaries
}

/** Decides like Redis, in this process alone and without expiring anything: for tests of layers and the ingress. */
export class MemoryLimitStore implements LimitStore {
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
    const { decision, changes } = decideModel(this.#cells, request, this.#limitsOf(request, nowMs), nowMs * 1_000)
    for (const [key, cell] of changes) this.#cells.set(key, cell)
    return decision
  }

  async refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    const nowMs = this.#clock.nowMs()
    if (charge.atUs === 0) return false
    const changes = refundModel(this.#cells, request, charge, this.#limitsOf(request, nowMs), nowMs * 1_000)
    for (const [key, cell] of changes) this.#cells.set(key, cell)
    return changes.length > 0
  }

  async pause(limit: Limit, scope: ScopeValues, ms: number): Promise<number> {
    const { changes, leftMs } = pauseModel(this.#cells, limitKey(limit, scope), ms, this.#clock.nowMs() * 1_000)
    for (const [key, cell] of changes) this.#cells.set(key, cell)
    return leftMs
  }

  #limitsOf(request: LimitRequest, nowMs: number): readonly ModelLimit[] {
    return request.limits.map((limit) => {
      const { span } = limit
      const { timeZone, anchor } = calendarOf(limit, request)
      const boundaries = span.kind === 'period' ? this.#boundaries(span.unit, timeZone, anchor, nowMs) : undefined
      return { limit, key: limitKey(limit, request.scope), boundaries }
    })
  }
}
