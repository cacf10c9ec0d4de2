import type { Decision, LimitState } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'

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

export interface LeaseSource {
  readonly monotonicMs: () => number
  readonly decide: (request: LimitRequest) => Promise<Decision>
  /** Units are not used this close to the end of their window: a request may still ask Redis for other limits. */
  readonly marginMs: number
  /** Called with the number of units that Redis charged. */
  readonly granted: (units: number) => void
}

/** Units that a request was given from memory. */
export interface Taken {
  /** The limit as this process knows it, with these units used unless they were put back. */
  state(nowMs: number): LimitState
  /** Once. False if their window ended, or there was nothing to give back. */
  putBack(nowMs: number): boolean
}

interface Waiting {
  readonly cost: number
  readonly resolve: (taken: Taken | undefined) => void
}

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
  /** The window's end as it is told. */
  #resetsMs = 0
  #plainUntilMs = Number.NEGATIVE_INFINITY
  /** Changes with every window, so that no unit is put back into another. */
  #window = 0
  #waiting: Waiting[] = []
  #acquiring = false

  constructor(limit: Limit, source: LeaseSource) {
    this.limit = limit
    this.#source = source
    this.#asked = { ...limit, onUnavailable: 'deny' }
  }

  /** Takes the cost if it is there, and `atLeast` too without being taken. */
  take(cost: number, atLeast: number, nowMs: number): Taken | undefined {
    return nowMs < this.#endsMs && this.#units >= cost + atLeast ? this.#given(cost) : undefined
  }

  /** Brings more units. Undefined, or resolved to it: ask Redis plainly. Never rejects. */
  acquire(cost: number, request: LimitRequest, nowMs: number): Promise<Taken | undefined> | undefined {
    if (nowMs < this.#plainUntilMs) return undefined
    return new Promise((resolve) => {
      this.#waiting.push({ cost, resolve })
      if (!this.#acquiring) void this.#serveWaiting(request)
    })
  }

  async #serveWaiting(request: LimitRequest): Promise<void> {
    this.#acquiring = true
    try {
      while (this.#waiting.length > 0) this.#serve(await this.#acquireOnce(request))
    } finally {
      this.#acquiring = false
      this.#serve(false)
    }
  }

  #serve(isGranted: boolean): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const one of waiting) {
      if (isGranted && this.#units >= one.cost) one.resolve(this.#given(one.cost))
      else if (isGranted) this.#waiting.push(one)
      else one.resolve(undefined)
    }
  }

  /** One lease, or what Redis has left of it if that serves anybody. */
  async #acquireOnce({ scope, timeZone, anchor }: LimitRequest): Promise<boolean> {
    const { size, lease } = this.limit
    const limits = [this.#asked]
    const wanted = this.#waiting.reduce((sum, { cost }) => sum + cost, -this.#live())
    let cost = Math.min(size, Math.max(lease, wanted))
    for (const attempt of ['lease', 'rest']) {
      const askedMs = this.#source.monotonicMs()
      const decision = await this.#ask({ scope, timeZone, anchor, limits, cost, peek: false })
      const [state] = decision?.limits ?? []
      if (decision === undefined || state === undefined) return false
      if (decision.allowed) return this.#add(cost, state, askedMs)
      const least = this.#waiting.reduce((min, one) => Math.min(min, one.cost), Number.POSITIVE_INFINITY) - this.#live()
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
    try {
      const decision = await this.#source.decide(request)
      return decision.reason === 'ok' || decision.reason === 'limit' ? decision : undefined
    } catch {
      return undefined
    }
  }

  /** False if the window ends too soon: then the units are lost, and the rest of the window is asked plainly. */
  #add(units: number, { remaining, resetMs }: LimitState, askedMs: number): boolean {
    const { monotonicMs, marginMs, granted } = this.#source
    granted(units)
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

  #given(cost: number): Taken {
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
