import type { PeriodBoundaries } from '../limits/limit.ts'
import { alive, changedHeld, type Ends, endAfter, sumOf } from './ends.ts'
import { type AlgorithmModel, type ModelArguments, stepBackMsMax } from './plan.ts'

/** One count, as its value in Redis holds it. */
export interface FixedWindowState {
  readonly endMs: number
  readonly used: number
  /** What of them is only held, by the second until which it may be settled; absent for nothing. */
  readonly held?: Ends
}

/** What refuses only for what is held may be free any moment. */
const settlesSoonMs = 2_000

const heldIn = ({ held }: FixedWindowState, nowMs: number): Ends => alive(held, Math.floor(nowMs / 1_000))
const withHeld = (held: Ends | undefined) => (held === undefined || held.size === 0 ? {} : { held })

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
    const before = state?.held !== undefined && counts ? heldIn(state, nowMs) : undefined
    const held = before === undefined ? 0 : Math.min(used, sumOf(before))
    const now = { used: used - held, remaining, resetMs, next: undefined, rebased: false }
    if (cost > remaining) {
      const waitMs = held > 0 && used - held + cost <= limit.size ? Math.min(settlesSoonMs, resetMs) : resetMs
      return { ...now, waitMs: cost > limit.size ? -1 : waitMs }
    }
    if (cost === 0) return { ...now, waitMs: 0 }
    const { holdMs } = limit
    const pairs =
      holdMs === undefined ? (counts ? state?.held : undefined) : changedHeld(before, endAfter(holdMs, nowMs), cost)
    const next = { endMs, used: used + cost, ...withHeld(pairs) }
    const shown = next.used - held - (holdMs === undefined ? 0 : cost)
    return { waitMs: 0, used: shown, remaining: limit.size - next.used, resetMs, next, rebased }
  },

  refund(state, limit, { cost, atUs }, nowUs) {
    if (state === undefined || cost === 0 || state.endMs * 1_000 <= nowUs || state.used === 0) return undefined
    const atMs = Math.floor(atUs / 1_000)
    if (currentSpan(0, limit, atMs).endMs !== state.endMs) return undefined
    const { holdMs } = limit
    const held =
      holdMs === undefined
        ? state.held
        : changedHeld(heldIn(state, Math.floor(nowUs / 1_000)), endAfter(holdMs, atMs), -cost)
    return { endMs: state.endMs, used: Math.max(0, state.used - cost), ...withHeld(held) }
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const nowMs = Math.floor(nowUs / 1_000)
    const chargedEndMs = currentSpan(0, limit, Math.floor(atUs / 1_000)).endMs
    if (cost === 0 || chargedEndMs <= nowMs) return undefined
    const { endMs, counts } = currentSpan(state?.endMs ?? 0, limit, nowMs)
    const { holdMs } = limit
    const before = state === undefined || !counts ? undefined : state
    const endS = holdMs === undefined ? 0 : endAfter(holdMs, Math.floor(atUs / 1_000))
    const pairs = holdMs === undefined ? before?.held : changedHeld(before && heldIn(before, nowMs), endS, cost)
    if (before === undefined) return { endMs: chargedEndMs, used: cost, ...withHeld(pairs) }
    return { endMs, used: Math.min(before.used + cost, Number.MAX_SAFE_INTEGER), ...withHeld(pairs) }
  },
}
