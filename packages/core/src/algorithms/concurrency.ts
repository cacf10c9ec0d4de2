import { alive, type Ends, endAfter, sumOf } from './ends.ts'
import { type AlgorithmModel, windowMsOf } from './plan.ts'

/** One count, as its value in Redis holds it: slots by the second at which they end. */
export type ConcurrencyState = Ends

/** When a slot is given back is not known: the wait of a denial is a guess. */
const guessMs = 1_000

const secondOf = (us: number) => Math.floor(us / 1_000_000)
const msOf = (us: number) => Math.floor(us / 1_000)
const endsOf = (slots: Ends) => [...slots.keys()].filter((endS) => endS > 0)
const refusedOf = (slots: Ends) => [...slots.keys()].find((endS) => endS < 0)

/** The twin of lua/algorithms/concurrency.lua, which says what the algorithm promises; tests hold the two together. */
export const concurrency: AlgorithmModel<ConcurrencyState> = {
  givesBackLatest: true,

  plan(state, limit, cost, nowUs) {
    const nowMs = msOf(nowUs)
    const slots = alive(state, secondOf(nowUs))
    const used = sumOf(slots)
    const remaining = Math.max(0, limit.size - used)
    const resetMs = () => Math.max(0, Math.max(0, ...endsOf(slots)) * 1_000 - nowMs)
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
    const whenever = () => refusedOf(slots) ?? Math.min(...endsOf(slots))
    const endS = atUs === 0 ? whenever() : endAfter(windowMsOf(limit), msOf(atUs))
    const taken = slots.get(endS)
    return cost === 0 || taken === undefined ? undefined : slots.set(endS, Math.max(0, taken - cost))
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const slots = alive(state, secondOf(nowUs))
    const endS = endAfter(windowMsOf(limit), msOf(atUs || nowUs))
    if (cost === 0 || endS <= secondOf(nowUs)) return undefined
    const at = atUs === 0 ? -endS : endS
    return slots.set(at, (slots.get(at) ?? 0) + cost)
  },
}
