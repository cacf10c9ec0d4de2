import { type AlgorithmModel, type ModelArguments, stepBackMsMax, windowMsOf } from './plan.ts'

/** One count, as its value in Redis holds it. */
export interface SlidingLogState {
  /** The time of each unit, in microseconds since the epoch, ascending. */
  readonly stampsUs: readonly number[]
  /** By which the last of them was admitted: a longer one counts from the next admission on. */
  readonly windowUs: number
}

const windowUsOf = (limit: ModelArguments) => windowMsOf(limit) * 1_000

/** The stamps that count. While the clock stands a little behind the newest, it counts as standing still. */
function liveStamps(state: SlidingLogState | undefined, limit: ModelArguments, nowUs: number) {
  const stampsUs = state?.stampsUs ?? []
  const windowUs = Math.min(state?.windowUs ?? Number.POSITIVE_INFINITY, windowUsOf(limit))
  const newestUs = stampsUs.at(-1)
  if (newestUs === undefined) return { stampsUs: [], newestUs: 0, windowUs, rebased: false }
  if (newestUs - nowUs > stepBackMsMax * 1_000) return { stampsUs: [], newestUs: 0, windowUs, rebased: true }
  const boundUs = Math.max(nowUs, newestUs) - windowUs
  const firstLive = stampsUs.findIndex((stampUs) => stampUs > boundUs)
  return { stampsUs: firstLive < 0 ? [] : stampsUs.slice(firstLive), newestUs, windowUs, rebased: false }
}

/** The twin of lua/algorithms/sliding-log.lua, which says what the algorithm promises; tests hold the two together. */
export const slidingLog: AlgorithmModel<SlidingLogState> = {
  givesBackLatest: true,

  plan(state, limit, cost, nowUs) {
    const { size } = limit
    const { stampsUs, newestUs, windowUs, rebased } = liveStamps(state, limit, nowUs)
    const used = stampsUs.length
    const remaining = Math.max(0, size - used)
    const leftMs = (stampUs: number, ofUs = windowUs) => Math.ceil((ofUs - (nowUs - stampUs)) / 1_000)
    const unchanged = { used, remaining, resetMs: used > 0 ? leftMs(newestUs) : 0, next: undefined, rebased: false }
    if (cost > size) return { ...unchanged, waitMs: -1 }
    if (cost > remaining) return { ...unchanged, waitMs: leftMs(stampsUs[used + cost - size - 1] ?? newestUs) }
    if (cost === 0) return { ...unchanged, waitMs: 0 }
    const stampUs = used > 0 ? Math.max(nowUs, newestUs) : nowUs
    const next = { stampsUs: stampsUs.concat(Array<number>(cost).fill(stampUs)), windowUs: windowUsOf(limit) }
    const resetMs = leftMs(stampUs, next.windowUs)
    return { waitMs: 0, used: used + cost, remaining: remaining - cost, resetMs, next, rebased }
  },

  refund(state, limit, { cost, atUs }, nowUs) {
    const { stampsUs, windowUs } = liveStamps(state, limit, nowUs)
    if (atUs === 0 && cost > 0 && stampsUs.length > 0) return { stampsUs: stampsUs.slice(0, -cost), windowUs }
    const from = stampsUs.indexOf(atUs)
    if (from < 0 || cost === 0) return undefined
    const count = Math.min(cost, stampsUs.lastIndexOf(atUs) + 1 - from)
    return { stampsUs: stampsUs.toSpliced(from, count), windowUs }
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const { stampsUs, newestUs, windowUs: liveUs } = liveStamps(state, limit, nowUs)
    const isEmpty = stampsUs.length === 0
    const windowUs = isEmpty ? windowUsOf(limit) : liveUs
    const added = Math.min(cost, limit.size - stampsUs.length)
    const latestUs = Math.max(isEmpty ? 0 : newestUs, nowUs)
    if (added <= 0 || atUs <= latestUs - windowUs) return undefined
    const stampedUs = Math.min(atUs, latestUs)
    const later = stampsUs.findIndex((stampUs) => stampUs > stampedUs)
    const at = later < 0 ? stampsUs.length : later
    return { stampsUs: stampsUs.toSpliced(at, 0, ...Array<number>(added).fill(stampedUs)), windowUs }
  },
}
