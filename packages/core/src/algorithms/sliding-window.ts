import { type AlgorithmModel, stepBackMsMax, windowMsOf } from './plan.ts'

/** One count, as its value in Redis holds it. */
export interface SlidingWindowState {
  /** As the cells are long; another than the limit's once that is edited. */
  readonly lengthMs: number
  /** How far into the current cell the last unit was charged. */
  readonly lastMs: number
  readonly startMs: number
  readonly current: number
  readonly previous: number
  /** Since when cells are this long: charges before are not known by their time. */
  readonly sinceUs: number
}

const unitsMax = Number.MAX_SAFE_INTEGER

function weigh(previous: number, leftMs: number, windowMs: number): number {
  const rest = previous % windowMs
  return ((previous - rest) / windowMs) * leftMs + Math.ceil((rest * leftMs) / windowMs)
}

interface Cells extends Omit<SlidingWindowState, 'sinceUs'> {
  readonly goneMs: number
  /** Undefined without stored cells that count. */
  readonly sinceUs: number | undefined
  readonly rebased: boolean
}

const noCells = (windowMs: number, nowMs: number, rebased: boolean): Cells => ({
  lengthMs: windowMs,
  startMs: nowMs - (nowMs % windowMs),
  current: 0,
  previous: 0,
  goneMs: Number.POSITIVE_INFINITY,
  lastMs: 0,
  sinceUs: undefined,
  rebased,
})

function cellsAt(state: SlidingWindowState | undefined, windowMs: number, nowMs: number): Cells {
  if (state === undefined) return noCells(windowMs, nowMs, false)
  const { lengthMs, lastMs, startMs, current } = state
  const goneMs = lengthMs > windowMs ? startMs + lastMs + windowMs : Number.POSITIVE_INFINITY
  if (startMs - nowMs > stepBackMsMax) return noCells(windowMs, nowMs, true)
  if (nowMs >= startMs + 2 * lengthMs || nowMs >= goneMs) return noCells(windowMs, nowMs, false)
  if (nowMs >= startMs + lengthMs) {
    const moved = { startMs: startMs + lengthMs, current: 0, previous: current, lastMs: 0 }
    return { ...state, ...moved, goneMs, rebased: false }
  }
  return { ...state, goneMs, rebased: false }
}

function timeOf(allowed: number, { lengthMs, startMs, current, previous }: Cells): number {
  const inNext = allowed < current
  const units = inNext ? current : previous
  const room = inNext ? allowed : allowed - current
  const endMs = startMs + lengthMs * (inNext ? 2 : 1)
  const leftMs = Math.floor((room / units) * lengthMs)
  if (weigh(units, leftMs, lengthMs) > room) return endMs - leftMs + 1
  return weigh(units, leftMs + 1, lengthMs) <= room ? endMs - leftMs - 1 : endMs - leftMs
}

function usedOf({ lengthMs, startMs, current, previous }: Cells, nowMs: number): number {
  const leftMs = nowMs > startMs ? startMs + lengthMs - nowMs : lengthMs
  return Math.min(unitsMax, current + weigh(previous, leftMs, lengthMs))
}

function freeMsOf({ lengthMs, startMs, current, previous }: Cells, nowMs: number): number {
  if (current > 0) return startMs + 2 * lengthMs
  return previous > 0 ? startMs + lengthMs : nowMs
}

/** The twin of lua/algorithms/sliding-window.lua, which says what the algorithm promises; tests compare the two. */
export const slidingWindow: AlgorithmModel<SlidingWindowState> = {
  plan(state, limit, cost, nowUs) {
    const { size } = limit
    const windowMs = windowMsOf(limit)
    const nowMs = Math.floor(nowUs / 1_000)
    const cells = cellsAt(state, windowMs, nowMs)
    const used = usedOf(cells, nowMs)
    const remaining = Math.max(0, size - used)
    if (cost > remaining || cost === 0) {
      const resetMs = Math.min(cells.goneMs, freeMsOf(cells, nowMs)) - nowMs
      const stands = { used, remaining, resetMs, next: undefined, rebased: false }
      if (cost === 0 || cost > size) return { waitMs: cost === 0 ? 0 : -1, ...stands }
      return { waitMs: Math.min(cells.goneMs, timeOf(size - cost, cells)) - nowMs, ...stands }
    }
    const edited = cells.lengthMs !== windowMs
    const startMs = edited ? nowMs - (nowMs % windowMs) : cells.startMs
    const next = {
      lengthMs: windowMs,
      lastMs: Math.max(edited ? 0 : cells.lastMs, nowMs - startMs),
      startMs,
      current: (edited ? used : cells.current) + cost,
      previous: edited ? 0 : cells.previous,
      sinceUs: edited ? nowUs : (cells.sinceUs ?? nowUs),
    }
    const resetMs = startMs + 2 * windowMs - nowMs
    return { waitMs: 0, used: used + cost, remaining: remaining - cost, resetMs, next, rebased: cells.rebased }
  },

  refund(state, _, { cost, atUs }, nowUs) {
    if (state === undefined || atUs < state.sinceUs) return undefined
    const { lengthMs, startMs, current, previous } = state
    const afterMs = Math.floor(atUs / 1_000) - startMs
    if (afterMs >= lengthMs || afterMs < -lengthMs) return undefined
    const inPrevious = afterMs < 0
    const givenBack = Math.min(cost, inPrevious ? previous : current)
    const endMs = startMs + lengthMs * (inPrevious ? 1 : 2)
    if (givenBack === 0 || Math.floor(nowUs / 1_000) >= endMs) return undefined
    return inPrevious ? { ...state, previous: previous - givenBack } : { ...state, current: current - givenBack }
  },

  raise(state, limit, { cost, atUs }, nowUs) {
    const {
      lengthMs,
      startMs,
      current,
      previous,
      lastMs,
      sinceUs = atUs,
    } = cellsAt(state, windowMsOf(limit), Math.floor(nowUs / 1_000))
    const afterMs = Math.min(Math.floor(Math.max(atUs, sinceUs) / 1_000) - startMs, lengthMs - 1)
    if (cost === 0 || afterMs < -lengthMs) return undefined
    const cells = { lengthMs, startMs, sinceUs }
    if (afterMs < 0) return { ...cells, lastMs, current, previous: Math.min(previous + cost, unitsMax) }
    return { ...cells, lastMs: Math.max(lastMs, afterMs), current: Math.min(current + cost, unitsMax), previous }
  },
}
