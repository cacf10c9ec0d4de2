import type { Decision, LimitState } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'

/*
 * The units of one limit for one caller that this process holds. There are three modes:
 *
 * - holding: units are left and their window runs; `take` takes them.
 * - acquiring: too few are left; one call is in flight, and requests that arrive wait for it. Its cost is the lease, or
 *   the sum of all waiting costs if that is more, so a request waits for this call and the next at most.
 * - asking plainly: Redis has too little, or the window is about to end; `acquire` refuses, and requests go to Redis as
 *   they are.
 */

/** NTP slews a clock by 500 ppm at most, so two clocks' seconds differ by no more than this part. */
const clockDriftMax = 0.001
/** Other processes may leave units unused, or refund them; then a lease is worth asking for again. */
const plainMs = 1_000

/** What all leases of a process share. */
export interface LeaseSource {
  readonly inner: LimitStore
  readonly monotonicMs: () => number
  /** Units are not used this close to the end of their window: a request may still ask Redis for other limits. */
  readonly marginMs: number
  /** The calls for units, and the units that Redis charged. */
  readonly counters: { calls: number; granted: number }
}

/** Units that a request was given from memory. */
export interface UnitLoan {
  /** The limit as this process knows it, with these units used unless they were put back. */
  state(nowMs: number): LimitState
  /** Once. False if their window ended, or there was nothing to give back. */
  putBack(nowMs: number): boolean
}

/** The units of one limit for one caller that this process holds. */
export class LeasedUnits {
  readonly limit: Limit
  readonly #source: LeaseSource
  /** As it is asked for: without Redis there is no lease, and a charge that came too late to be one is given back. */
  readonly #asked: Limit
  #units = 0
  /** Redis's part of `remaining`, when it was last asked. */
  #remaining = 0
  /** From then on the units are not used any more; safely before their window ends. */
  #endsMs = Number.NEGATIVE_INFINITY
  /** The window's end, as decisions report it. */
  #resetsMs = 0
  #plainUntilMs = Number.NEGATIVE_INFINITY
  /** Changes with every window, so that no unit is put back into another. */
  #window = 0
  /** Requests that wait for units. */
  readonly #waiting = new Set<{ readonly cost: number }>()
  /** The call in flight; false if it brought no units. */
  #call: Promise<boolean> | undefined

  constructor(limit: Limit, source: LeaseSource) {
    this.limit = limit
    this.#source = source
    this.#asked = { ...limit, onUnavailable: 'deny' }
  }

  /** Takes the cost if it is there, and `atLeast` too without being taken. */
  take(cost: number, atLeast: number, nowMs: number): UnitLoan | undefined {
    return nowMs < this.#endsMs && this.#units >= cost + atLeast ? this.#given(cost) : undefined
  }

  /**
   * Takes the cost once a call brought the units for it. Undefined: ask Redis plainly, which is known without a call
   * while Redis has too few. Never rejects.
   */
  acquire(cost: number, request: LimitRequest): Promise<UnitLoan | undefined> | undefined {
    return this.#source.monotonicMs() < this.#plainUntilMs ? undefined : this.#acquire(cost, request)
  }

  async #acquire(cost: number, request: LimitRequest): Promise<UnitLoan | undefined> {
    const { monotonicMs } = this.#source
    const waiting = { cost }
    this.#waiting.add(waiting)
    try {
      while (monotonicMs() >= this.#plainUntilMs) {
        this.#call ??= this.#acquireOnce(request).finally(() => {
          this.#call = undefined
        })
        if (!(await this.#call)) return undefined
        const taken = this.take(cost, 0, monotonicMs())
        if (taken !== undefined) return taken
      }
      return undefined
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** Acquires one lease, or what Redis has left of it if that serves a waiting request. */
  async #acquireOnce({ scope, timeZone, anchor }: LimitRequest): Promise<boolean> {
    const { size, lease } = this.limit
    const limits = [this.#asked]
    const waiting = () => [...this.#waiting].map(({ cost }) => cost)
    const wanted = waiting().reduce((sum, cost) => sum + cost, -this.#live())
    let cost = Math.min(size, Math.max(lease, wanted))
    for (const attempt of ['lease', 'rest']) {
      const askedMs = this.#source.monotonicMs()
      const decision = await this.#ask({ scope, timeZone, anchor, limits, cost, peek: false })
      const [state] = decision?.limits ?? []
      if (decision === undefined || state === undefined) return false
      if (decision.allowed) return this.#add(cost, state, askedMs)
      const least = waiting().reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY) - this.#live()
      if (attempt === 'rest' || state.remaining < Math.max(1, least)) {
        this.#plainUntilMs = this.#source.monotonicMs() + Math.min(plainMs, state.resetMs)
        return false
      }
      cost = state.remaining
    }
    return false
  }

  /** Undefined when Redis did not decide; why is found by the request itself, which is put to it next. */
  async #ask(request: LimitRequest): Promise<Decision | undefined> {
    this.#source.counters.calls += 1
    try {
      const decision = await this.#source.inner.decide(request)
      return decision.reason === 'ok' || decision.reason === 'limit' ? decision : undefined
    } catch {
      return undefined
    }
  }

  /** False if the window ends too soon: then the units are lost, and the rest of the window is asked plainly. */
  #add(units: number, { remaining, resetMs }: LimitState, askedMs: number): boolean {
    const { monotonicMs, marginMs, counters } = this.#source
    counters.granted += units
    const nowMs = monotonicMs()
    // Redis decided after it was asked, and resetMs is rounded up.
    const windowEndMs = askedMs + resetMs - 1
    const endsMs = windowEndMs - marginMs - resetMs * clockDriftMax
    if (nowMs < this.#endsMs) {
      this.#units += units
      this.#endsMs = Math.min(this.#endsMs, endsMs)
    } else {
      this.#window += 1
      this.#units = units
      this.#endsMs = endsMs
    }
    this.#remaining = remaining
    this.#resetsMs = nowMs + resetMs
    if (nowMs < this.#endsMs) return true
    this.#plainUntilMs = windowEndMs
    return false
  }

  #live(): number {
    return this.#source.monotonicMs() < this.#endsMs ? this.#units : 0
  }

  #given(cost: number): UnitLoan {
    this.#units -= cost
    const window = this.#window
    const { limit } = this
    const remaining = this.#units + this.#remaining
    const resetsMs = this.#resetsMs
    let isHeld = true
    return {
      state: (nowMs) => {
        const left = isHeld ? remaining : remaining + cost
        const used = Math.max(0, limit.capacity - left)
        const resetMs = Math.max(0, Math.ceil(resetsMs - nowMs))
        return { name: limit.name, size: limit.capacity, used, remaining: left, resetMs }
      },
      putBack: (nowMs) => {
        const counts = isHeld && cost > 0 && window === this.#window && nowMs < this.#endsMs
        isHeld = false
        if (counts) this.#units += cost
        return counts
      },
    }
  }
}
