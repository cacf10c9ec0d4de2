import type { AlgorithmModel, ModelArguments, Plan, Refund } from './plan.ts'
import { stepBackMsMax } from './plan.ts'

/** The twin of lua/algorithms/sliding-log.lua, which says what the algorithm promises; tests hold the two together. */

export interface SlidingLogState {
  /** The time of each unit, in microseconds since the epoch, ascending. */
  readonly stampsUs: readonly number[]
}

interface Live {
  readonly stampsUs: readonly number[]
  readonly newestUs: number
  readonly rebased: boolean
}

function windowUsOf({ span }: ModelArguments): number {
  if (span.kind !== 'window') throw new Error('a sliding log came with a calendar period')
  return span.ms * 1_000
}

/** The stamps that count. While the clock stands a little behind the newest, it counts as standing still. */
function liveStamps(state: SlidingLogState | undefined, limit: ModelArguments, nowUs: number): Live {
  const stampsUs = state?.stampsUs ?? []
  const newestUs = stampsUs.at(-1)
  if (newestUs === undefined) return { stampsUs: [], newestUs: 0, rebased: false }
  if (newestUs - nowUs > stepBackMsMax * 1_000) return { stampsUs: [], newestUs: 0, rebased: true }
  const boundUs = Math.max(nowUs, newestUs) - windowUsOf(limit)
  const firstLive = stampsUs.findIndex((stampUs) => stampUs > boundUs)
  return { stampsUs: firstLive < 0 ? [] : stampsUs.slice(firstLive), newestUs, rebased: false }
}

function plan(
  state: SlidingLogState | undefined,
  limit: ModelArguments,
  cost: number,
  nowUs: number,
): Plan<SlidingLogState> {
  const { size } = limit
  const { stampsUs, newestUs, rebased } = liveStamps(state, limit, nowUs)
  const used = stampsUs.length
  const remaining = Math.max(0, size - used)
  const leftMs = (stampUs: number) => Math.ceil((windowUsOf(limit) - (nowUs - stampUs)) / 1_000)
  const unchanged = { used, remaining, resetMs: used > 0 ? leftMs(newestUs) : 0, next: undefined, rebased: false }
  if (cost > size) return { ...unchanged, waitMs: -1 }
  if (cost > remaining) return { ...unchanged, waitMs: leftMs(stampsUs[used + cost - size - 1] ?? newestUs) }
  if (cost === 0) return { ...unchanged, waitMs: 0 }
  const stampUs = used > 0 ? Math.max(nowUs, newestUs) : nowUs
  const next = { stampsUs: [...stampsUs, ...Array<number>(cost).fill(stampUs)] }
  return { waitMs: 0, used: used + cost, remaining: remaining - cost, resetMs: leftMs(stampUs), next, rebased }
}

function refund(
  state: SlidingLogState | undefined,
  limit: ModelArguments,
  { cost, atUs }: Refund,
  nowUs: number,
): SlidingLogState | undefined {
  const { stampsUs } = liveStamps(state, limit, nowUs)
  const from = stampsUs.indexOf(atUs)
  if (from < 0 || cost === 0) return undefined
  const count = Math.min(cost, stampsUs.lastIndexOf(atUs) + 1 - from)
  return { stampsUs: stampsUs.toSpliced(from, count) }
}

export const slidingLog: AlgorithmModel<SlidingLogState> = { plan, refund }
