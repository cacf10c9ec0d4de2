import { alive, type Ends, endAfter, sumOf } from './ends.ts'
import { type AlgorithmModel, windowMsOf } from './plan.ts'

/** One count, as its value in Redis holds it: slots by the second at which they end, in the order of the value. */
export type ConcurrencyState = Ends

/** When a slot is given back is not known: the wait of a denial is a guess. */
const guessMs = 1_000

const secondOf = (us: number) => Math.floor(us / 1_000_000)
const msOf = (us: number) => Math.floor(us / 1_000)

/** The twin of lua/algorithms/concurrency.lua, which says what the algorithm promises; tests hold the two together. */
export const concurrency: AlgorithmModel<ConcurrencyState> = {
  givesBackLatest: true,

  plan(state, limit, cost, nowUs) {
    const nowMs = msOf(nowUs)
    const slots = alive(state, secondOf(nowUs))
    const used = sumOf(slots)
    const remaining = Math.max(0, limit.size - used)
    const resetMs = () => Math.max(0, Math.max(0, ...slots.keys()) * 1_000 - nowMs)
    if (cost > remaining || cost === 0) {
      const waitMs = cost === 0 ? 0 : cost > limit.size ? -1 : guessMs
      return { waitMs, used, remaining, resetMs: resetMs(), next: undefined, rebased: false }
    }
    const endS = endAfter(windowMsOf(limit), nowMs)
    slots.set(endS, (slots.get(endS) ?? 0) + cost)
    const after = { used: used + cost, remaining: remaining - cost, resetMs: resetMs() }
    return { waitMs: 0, ...after, next: slots, rebased: false }
  },

  refund(state, limit, { cost, atUs }, nowUs) {
    const slots = alive(state, secondOf(nowUs))
    const endS = atUs === 0 ? Math.min(...slots.keys()) : endAfter(windowMsOf(limit), msOf(atUs))
    const taken = slots.get(endS)
    return cost === 0 || taken === undefined ? undefined : slots.set(endS, Math.max(0, taken - cost))
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const slots = alive(state, secondOf(nowUs))
    const isFirst = atUs === 0 && slots.size > 0
    const endS = isFirst ? Math.min(...slots.keys()) : endAfter(windowMsOf(limit), msOf(atUs || nowUs))
    if (cost === 0 || endS <= secondOf(nowUs)) return undefined
    return slots.set(endS, (slots.get(endS) ?? 0) + cost)
  },
}
