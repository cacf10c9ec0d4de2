import type { PeriodBoundaries } from '../limits/limit.ts'
import { type AlgorithmModel, type ModelArguments, stepBackMsMax } from './plan.ts'

/** One count, as its value in Redis holds it. */
export interface FixedWindowState {
  readonly endMs: number
  readonly used: number
}

/** The end of a period, and `horizonMs`, that of the period after it. */
function calendarEnds([startMs, nextMs, afterNextMs]: PeriodBoundaries, nowMs: number) {
  const lastMs = afterNextMs - nextMs
  if (nowMs >= afterNextMs) {
    const endMs = afterNextMs + (Math.floor((nowMs - afterNextMs) / lastMs) + 1) * lastMs
    return { endMs, horizonMs: endMs + lastMs }
  }
  if (nowMs >= nextMs) return { endMs: afterNextMs, horizonMs: afterNextMs + lastMs }
  if (nowMs >= startMs) return { endMs: nextMs, horizonMs: afterNextMs }
  const firstMs = nextMs - startMs
  const endMs = startMs - Math.floor((startMs - 1 - nowMs) / firstMs) * firstMs
  return { endMs, horizonMs: endMs + firstMs }
}

function boundariesOf({ boundaries }: ModelArguments): PeriodBoundaries {
  if (boundaries === undefined) throw new Error('a limit with a calendar period came without its boundaries')
  return boundaries
}

/** The span that runs now; `counts` says whether the stored units count in it. */
function currentSpan(storedEndMs: number, limit: ModelArguments, nowMs: number) {
  const { span } = limit
  if (span.kind === 'window') {
    const endMs = nowMs - (nowMs % span.ms) + span.ms
    if (storedEndMs <= nowMs) return { endMs, counts: false }
    if (storedEndMs <= endMs) return { endMs: storedEndMs, counts: true }
    const aheadMs = storedEndMs - span.ms - nowMs
    return aheadMs <= stepBackMsMax ? { endMs: storedEndMs, counts: true } : { endMs, counts: false }
  }
  const { endMs, horizonMs } = calendarEnds(boundariesOf(limit), nowMs)
  const running = storedEndMs > nowMs && storedEndMs <= horizonMs
  return running ? { endMs: storedEndMs, counts: true } : { endMs, counts: false }
}

/** The twin of lua/algorithms/fixed-window.lua, which says what the algorithm promises; tests hold the two together. */
export const fixedWindow: AlgorithmModel<FixedWindowState> = {
  plan(state, limit, cost, nowUs) {
    const nowMs = Math.floor(nowUs / 1_000)
    const { endMs, counts } = currentSpan(state?.endMs ?? 0, limit, nowMs)
    const used = state !== undefined && counts ? state.used : 0
    const rebased = state !== undefined && !counts && state.endMs > nowMs
    const remaining = Math.max(0, limit.size - used)
    const resetMs = endMs - nowMs
    if (cost > remaining) {
      return { waitMs: cost > limit.size ? -1 : resetMs, used, remaining, resetMs, next: undefined, rebased: false }
    }
    if (cost === 0) return { waitMs: 0, used, remaining, resetMs, next: undefined, rebased: false }
    const next = { endMs, used: used + cost }
    return { waitMs: 0, used: next.used, remaining: limit.size - next.used, resetMs, next, rebased }
  },

  refund(state, limit, { cost, atUs }, nowUs) {
    if (state === undefined || cost === 0 || state.endMs * 1_000 <= nowUs || state.used === 0) return undefined
    const chargedEndMs = currentSpan(0, limit, Math.floor(atUs / 1_000)).endMs
    return chargedEndMs === state.endMs ? { endMs: state.endMs, used: Math.max(0, state.used - cost) } : undefined
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const nowMs = Math.floor(nowUs / 1_000)
    const chargedEndMs = currentSpan(0, limit, Math.floor(atUs / 1_000)).endMs
    if (cost === 0 || chargedEndMs <= nowMs) return undefined
    const { endMs, counts } = currentSpan(state?.endMs ?? 0, limit, nowMs)
    if (state === undefined || !counts) return { endMs: chargedEndMs, used: cost }
    return { endMs, used: Math.min(state.used + cost, Number.MAX_SAFE_INTEGER) }
  },
}
