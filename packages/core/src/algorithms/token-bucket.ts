import { type AlgorithmModel, type ModelArguments, stepBackMsMax, windowMsOf } from './plan.ts'

/** A length of time: whole microseconds, and a numerator over the size. */
interface Exact {
  readonly us: number
  readonly part: number
}

/** How fast units flow back. */
interface Rate {
  readonly size: number
  readonly windowMs: number
}

/** One count, as its value in Redis holds it. */
export interface TokenBucketState extends Rate {
  /** When the bucket is full again. */
  readonly fullUs: number
  readonly part: number
  /** The least backlog that charges after `lowAfterUs` found. */
  readonly lowUs: number
  readonly lowAfterUs: number
  /** Since when this size and window hold. */
  readonly sinceUs: number
  /** Of the last charge. */
  readonly lastUs: number
}

const unitsMax = 90_000_000
/** A backlog that no charge found. */
const lowNone = 2 ** 48 - 1

function span(units: number, { size, windowMs }: Rate): Exact {
  const restUs = (windowMs * 1_000) % size
  const parts = units * restUs
  const part = parts % size
  return { us: units * ((windowMs * 1_000 - restUs) / size) + (parts - part) / size, part }
}

const isLess = (one: Exact, other: Exact) => one.us < other.us || (one.us === other.us && one.part < other.part)
const upUs = ({ us, part }: Exact) => us + (part > 0 ? 1 : 0)

type LowMark = Pick<TokenBucketState, 'lowUs' | 'lowAfterUs' | 'sinceUs'>

interface Backlog extends Exact, LowMark {
  readonly rebased: boolean
}

const unknown = (nowUs: number): LowMark => ({ lowUs: lowNone, lowAfterUs: nowUs, sinceUs: nowUs })

function backlogOf(state: TokenBucketState | undefined, rate: Rate, burst: number, nowUs: number): Backlog {
  if (state === undefined) return { us: 0, part: 0, ...unknown(nowUs), rebased: false }
  const resized = state.size !== rate.size
  const edited = resized || state.windowMs !== rate.windowMs
  const known = edited ? unknown(nowUs) : state
  const { lowUs, lowAfterUs, sinceUs } = known
  const us = (resized ? upUs({ us: state.fullUs, part: state.part }) : state.fullUs) - nowUs
  const fillUs = upUs(span(burst, rate))
  const stepBackUsMax = stepBackMsMax * 1_000
  if (us > fillUs + stepBackUsMax) {
    const isSetBack = state.lastUs - nowUs > stepBackUsMax
    const brimUs = isSetBack ? 0 : Math.max(0, state.lastUs + fillUs - nowUs)
    return { us: brimUs, part: 0, ...unknown(nowUs), rebased: true }
  }
  const left = us < 0 ? { us: 0, part: 0 } : { us, part: resized ? 0 : state.part }
  return { ...left, lowUs, lowAfterUs, sinceUs, rebased: false }
}

function unitsOf(backlog: Exact, rate: Rate): number {
  const units = Math.ceil(((backlog.us + backlog.part / rate.size) * rate.size) / (rate.windowMs * 1_000))
  if (isLess(span(units, rate), backlog)) return units + 1
  return units > 0 && !isLess(span(units - 1, rate), backlog) ? units - 1 : units
}

const rateOf = (limit: ModelArguments): Rate => ({ size: limit.size, windowMs: windowMsOf(limit) })

/** What may be given back for a charge of `taken`: all of it, or what is sure not to have run over. */
function givenBack(state: TokenBucketState, taken: Exact, atUs: number, nowUs: number): Exact {
  const safeUs = atUs >= state.lowAfterUs ? state.lowUs : 0
  const flowedUs = Math.max(nowUs, state.lowAfterUs) - atUs
  if (flowedUs <= 0 || safeUs >= upUs(taken)) return taken
  const us = taken.us - flowedUs
  return us < safeUs ? { us: safeUs, part: 0 } : { us, part: taken.part }
}

/** The twin of lua/algorithms/token-bucket.lua, which says what the algorithm promises; tests hold the two together. */
export const tokenBucket: AlgorithmModel<TokenBucketState> = {
  plan(state, limit, cost, nowUs) {
    const rate = rateOf(limit)
    const burst = limit.capacity
    const backlog = backlogOf(state, rate, burst, nowUs)
    const used = unitsOf(backlog, rate)
    const remaining = Math.max(0, burst - used)
    if (cost > remaining || cost === 0) {
      const stands = { used, remaining, resetMs: Math.ceil(upUs(backlog) / 1_000), next: undefined, rebased: false }
      if (cost === 0 || cost > burst) return { waitMs: cost === 0 ? 0 : -1, ...stands }
      const room = span(burst - cost, rate)
      const waitUs = backlog.us - room.us + (backlog.part > room.part ? 1 : 0)
      return { waitMs: Math.ceil(waitUs / 1_000), ...stands }
    }
    const taken = span(cost, rate)
    const carries = backlog.part + taken.part >= rate.size
    const after = {
      us: backlog.us + taken.us + (carries ? 1 : 0),
      part: backlog.part + taken.part - (carries ? rate.size : 0),
    }
    const known = isLess(backlog, taken)
      ? { lowUs: lowNone, lowAfterUs: nowUs }
      : { lowUs: Math.min(backlog.lowUs, backlog.us), lowAfterUs: backlog.lowAfterUs }
    const next = {
      ...rate,
      fullUs: nowUs + after.us,
      part: after.part,
      ...known,
      sinceUs: backlog.sinceUs,
      lastUs: nowUs,
    }
    const resetMs = Math.ceil(upUs(after) / 1_000)
    return { waitMs: 0, used: used + cost, remaining: remaining - cost, resetMs, next, rebased: backlog.rebased }
  },

  refund(state, _, { cost, atUs }, nowUs) {
    if (state === undefined || cost === 0 || atUs < state.sinceUs) return undefined
    const { fullUs, lowUs } = state
    if (fullUs < nowUs || (fullUs === nowUs && state.part === 0)) return undefined
    const back = givenBack(state, span(Math.min(cost, unitsMax), state), atUs, nowUs)
    if (back.us === 0 && back.part === 0) return undefined
    const borrows = state.part < back.part
    const us = fullUs - back.us - (borrows ? 1 : 0)
    const full =
      us < nowUs
        ? { fullUs: nowUs, part: 0 }
        : { fullUs: us, part: state.part - back.part + (borrows ? state.size : 0) }
    return { ...state, ...full, lowUs: lowUs === lowNone ? lowNone : Math.max(0, lowUs - upUs(back)) }
  },

  raise(state, limit, { cost }, nowUs) {
    const { remaining } = tokenBucket.plan(state, limit, 0, nowUs)
    return tokenBucket.plan(state, limit, Math.min(cost, remaining), nowUs).next
  },
}
