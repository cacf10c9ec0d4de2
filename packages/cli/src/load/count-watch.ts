import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { type Admission, type Breach, checkHeld } from '@weir/core/held/check-held.ts'
import {
  type ClockOffset,
  type ClockReading,
  followsClock,
  narrowOffset,
  noOffset,
  tellsEnd,
} from '@weir/core/held/store-clock.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import type { Subject } from '@weir/policy/policy.ts'

const boundariesOf = createBoundaryCache()

/** What the load saw of one count of a limit. */
export class CountWatch {
  readonly scope: ScopeValues
  readonly #limit: Limit
  readonly #subject: Subject
  /** By this machine's clock. */
  readonly #admissions: Admission[] = []
  #offset: ClockOffset | undefined
  #isContradicted = false
  /** Requests that were admitted without Redis. */
  uncounted = 0

  constructor(limit: Limit, subject: Subject, scope: ScopeValues) {
    this.#limit = limit
    this.#subject = subject
    this.scope = scope
    if (!followsClock(limit)) this.#offset = noOffset
  }

  readonly #periodsAt = (ms: number) => {
    const { span } = this.#limit
    const { timeZone, anchor } = this.#subject
    return boundariesOf(span.kind === 'period' ? span.unit : 'minute', timeZone, anchor, ms)
  }

  admit(cost: number, reading: ClockReading): void {
    this.#admissions.push({ fromMs: reading.sentMs, toMs: reading.answeredMs, cost })
    if (this.#isContradicted || !followsClock(this.#limit) || !tellsEnd(this.#limit, reading)) return
    this.#offset = narrowOffset(this.#limit, this.#offset, reading, this.#periodsAt)
    this.#isContradicted = this.#offset === undefined
  }

  get units(): number {
    return this.#admissions.reduce((sum, { cost }) => sum + cost, 0)
  }

  get requests(): number {
    return this.#admissions.length
  }

  /** Whether it held; a text says why that is not known. */
  check(): { readonly breach: Breach | undefined; readonly withinMs: number } | string {
    if (this.#isContradicted)
      return 'answers contradict each other about when its windows end: a clock was set, or several decide'
    if (this.#offset === undefined) return 'answers do not say exactly enough when its windows end'
    const { leastMs, mostMs } = this.#offset
    const moved = this.#admissions.map(({ fromMs, toMs, cost }) => ({
      fromMs: fromMs + leastMs,
      toMs: toMs + mostMs,
      cost,
    }))
    const breach = checkHeld({ ...this.#limit, boundariesAt: this.#periodsAt }, moved)
    const withinMs = moved.reduce((most, { fromMs, toMs }) => Math.max(most, toMs - fromMs), 0)
    return { withinMs, breach: breach === undefined ? undefined : { ...breach, atMs: breach.atMs - mostMs } }
  }
}
