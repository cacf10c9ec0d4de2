import { setTimeout } from 'node:timers/promises'
import type { Clock } from '@weir/core/clock.ts'

/** A part of the status that answers later than this is as good as none. */
const answerMs = 1_000
/** The first answer of all, which none can stand in for. */
const firstMs = 3_000
/** So old an answer may stand in for a late one: two questions of a page that is open. */
const youngMs = 20_000

/** No answer came in time. */
class LateAnswer extends Error {}

/** Parts of the status: one late answer is no outage, so the one before stands in for it, once. */
export class StatusBridge {
  readonly #clock: Clock
  readonly #asked = new Set<string>()
  readonly #last = new Map<string, { readonly answer: unknown; readonly atMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Asks for at most a second. A refusal is told at once; so is what is late again. */
  async inTime<T>(name: string, ask: () => Promise<T>): Promise<T> {
    const waitMs = this.#asked.has(name) ? answerMs : firstMs
    this.#asked.add(name)
    const late = setTimeout(waitMs, undefined, { ref: false }).then(() => Promise.reject(new LateAnswer(name)))
    try {
      return this.keep(name, await Promise.race([ask(), late]), false)
    } catch (error) {
      const before = this.#before<T>(name)
      if (error instanceof LateAnswer && before !== undefined) return before.answer
      throw error
    }
  }

  /** Returns the answer, or what was answered before if it says only that it is late. */
  keep<T>(name: string, answer: T, isLate: boolean): T {
    if (isLate) return (this.#before<T>(name) ?? { answer }).answer
    this.#last.set(name, { answer, atMs: this.#clock.nowMs() })
    return answer
  }

  #before<T>(name: string): { readonly answer: T } | undefined {
    const known = this.#last.get(name)
    this.#last.delete(name)
    const isYoung = known !== undefined && this.#clock.nowMs() - known.atMs < youngMs
    return isYoung ? { answer: known.answer as T } : undefined
  }
}
