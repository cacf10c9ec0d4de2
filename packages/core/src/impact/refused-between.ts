import { type Limit, longestPeriodMs, type PeriodBoundaries, type PeriodUnit } from '../limits/limit.ts'

/*
 * How many requests does a limit refuse, if all that is known is what was asked for in each minute? Time is cut into
 * frames: windows that are whole minutes, else as many minutes as a count looks back.
 *
 * - At least: within a frame a limit admits no more than its windows there hold. All other units were refused, in
 *   requests of at most `costMax`.
 * - At most: no more can be in use than was asked for in the frame and, where a count looks back beyond it, in the one
 *   before, nor more than other limits admit. Where that fits, nothing is refused. Elsewhere everything may be, but for
 *   the requests that must have been admitted before one can be refused.
 *
 * Both hold in whatever order the requests of a minute came, and whatever other limits refused: that charges nothing.
 */

/** What was asked for in one minute under one count. */
export interface MinuteDemand {
  /** When the minute began. */
  readonly ms: number
  readonly count: number
  readonly units: number
  /** No request cost more. */
  readonly costMax: number
  /** No more of its units were charged: other limits admit no more in a minute. At most `units`. */
  readonly most: number
}

/** A number of requests, as far as it is known. */
export interface Interval {
  readonly atLeast: number
  readonly atMost: number
}

/** What a question is asked with. */
export interface IntervalParts {
  /** Refusals count from this minute on; earlier demands only fill the counts. */
  readonly fromMs: number
  /** When the calendar period of an instant began, and the next ones do. */
  readonly boundariesAt: (unit: PeriodUnit, ms: number) => PeriodBoundaries
}

interface Frame {
  readonly startMs: number
  readonly endMs: number
  count: number
  units: number
  costMax: number
  most: number
  /** Requests in the span that came while all of the frame until then fitted. */
  safe: number
  /** Requests before the span that is asked about, and their units. */
  before: number
  unitsBefore: number
}

const minuteMs = 60_000

/** How long frames of a window are, and how many windows one touches. */
function frameOf(windowMs: number): { readonly ms: number; readonly windows: number; readonly isAligned: boolean } {
  const isAligned = windowMs % minuteMs === 0 || minuteMs % windowMs === 0
  // Of windows that minutes do not fit, the one before may have begun two windows ago.
  const ms = isAligned ? Math.max(windowMs, minuteMs) : Math.ceil((2 * windowMs) / minuteMs) * minuteMs
  return { ms, windows: isAligned ? ms / windowMs : Math.floor(ms / windowMs) + 2, isAligned }
}

/** The most units in use at a request's time, its own among them: what was asked for, or charged and one more. */
const mostWith = ({ units, most, costMax }: Pick<MinuteDemand, 'units' | 'most' | 'costMax'>) =>
  Math.min(units, most + costMax)

function framed(
  { span, capacity }: Limit,
  demands: Iterable<MinuteDemand>,
  { fromMs, boundariesAt }: IntervalParts,
): Frame[] {
  const frames: Frame[] = []
  const frameMs = span.kind === 'window' ? frameOf(span.ms).ms : 0
  for (const demand of demands) {
    const { ms, count, units, costMax, most } = demand
    let frame = frames.at(-1)
    if (frame === undefined || ms >= frame.endMs) {
      const aligned = ms - (ms % frameMs)
      const [startMs, endMs] = span.kind === 'period' ? boundariesAt(span.unit, ms) : [aligned, aligned + frameMs]
      frame = { startMs, endMs, count: 0, units: 0, costMax: 0, most: 0, safe: 0, before: 0, unitsBefore: 0 }
      frames.push(frame)
    }
    if (ms >= fromMs && frame.most + mostWith(demand) <= capacity) frame.safe += count
    frame.count += count
    frame.units += units
    frame.most += most
    frame.costMax = Math.max(frame.costMax, costMax)
    if (ms >= fromMs) continue
    frame.before += count
    frame.unitsBefore += units
  }
  return frames
}

const largestOf = (frames: readonly Frame[]) => Math.max(...frames.map(({ costMax }) => costMax))
/** The fewest requests that so many units are. */
const fewest = (units: number, costMax: number) => (units > 0 && costMax > 0 ? Math.ceil(units / costMax) : 0)

/** Units that flow back into a bucket within a frame. */
const refillOf = ({ size, span }: Limit) => (span.kind === 'window' ? (size * frameOf(span.ms).ms) / span.ms : 0)
/** Frames without any demand between two. */
const gapOf = (before: Frame | undefined, { startMs, endMs }: Frame) =>
  before === undefined ? 0 : (startMs - before.endMs) / (endMs - startMs)

/** Whether nothing that was before a frame counts in it. */
const isWhole = ({ algorithm, span }: Limit) =>
  algorithm === 'fixed_window' && (span.kind === 'period' || frameOf(span.ms).isAligned)

function surelyRefused(limit: Limit, frames: readonly Frame[]): number {
  const { capacity, span } = limit
  const windows = span.kind === 'window' ? frameOf(span.ms).windows : 1
  return frames.reduce((sum, { units, costMax, before, unitsBefore }) => {
    const mayBeBefore = isWhole(limit) && unitsBefore <= capacity ? 0 : before
    return sum + Math.max(0, fewest(units - windows * capacity, costMax) - mayBeBefore)
  }, 0)
}

/** A bucket admits no more than one that is full at first and gets what flows back in a frame at its begin. */
function surelyRefusedByBucket(limit: Limit, frames: readonly Frame[]): number {
  const [{ capacity }, refill] = [limit, refillOf(limit)]
  let [refused, free, excess] = [0, capacity, 0]
  let run: Frame[] = []
  const endRun = () => {
    const before = run.reduce((sum, frame) => sum + frame.before, 0)
    refused += Math.max(0, fewest(excess, largestOf(run)) - before)
    excess = 0
    run = []
  }
  for (const [at, frame] of frames.entries()) {
    free = Math.min(capacity, free + gapOf(frames[at - 1], frame) * refill)
    if (free >= capacity && run.length > 0) endRun()
    run.push(frame)
    const admitted = Math.min(frame.units, free + refill)
    excess += frame.units - admitted
    free = Math.min(capacity, free + refill - admitted)
  }
  if (run.length > 0) endRun()
  return refused
}

/** Says of each frame whether anything can be refused in it. */
function possibleFrames(limit: Limit, frames: readonly Frame[]): readonly boolean[] {
  const { capacity, algorithm } = limit
  const refill = refillOf(limit)
  let inUse = 0
  return frames.map((frame, at) => {
    const [last, gap] = [frames[at - 1], gapOf(frames[at - 1], frame)]
    if (algorithm !== 'token_bucket') {
      const earlier = isWhole(limit) || gap > 0 ? 0 : (last?.most ?? 0)
      return earlier + mostWith(frame) > capacity
    }
    inUse = Math.max(0, inUse - gap * refill)
    const isPossible = inUse + mostWith(frame) > capacity
    inUse = Math.min(capacity, Math.max(0, inUse - refill) + frame.most)
    return isPossible
  })
}

/**
 * Requests that were admitted if one was refused in the first and one in the last of these frames. Where none was
 * refused in one of them, all of that frame were admitted.
 */
function spared(limit: Limit, run: readonly Frame[]): number {
  const costMax = largestOf(run)
  const [isBucket, units] = [limit.algorithm === 'token_bucket', limit.capacity]
  const sure = isBucket ? fewest(Math.min(units, refillOf(limit)) - costMax, costMax) : Math.floor(units / costMax)
  return run.some(({ before }) => before > 0) ? 0 : Math.min(sure, run[0]?.count ?? 0, run.at(-1)?.count ?? 0)
}

function possiblyRefused(limit: Limit, frames: readonly Frame[]): number {
  const { capacity, algorithm, blockMs } = limit
  // Two refusals of a bucket are a whole frame apart, if there is one between theirs.
  const runLength = algorithm === 'token_bucket' ? 3 : 2
  const possible = possibleFrames(limit, frames)
  let [refused, blockedToMs] = [0, 0]
  let run: Frame[] = []
  for (const [at, frame] of frames.entries()) {
    const isBlocked = frame.startMs < blockedToMs
    if (possible[at]) blockedToMs = Math.max(blockedToMs, frame.endMs + blockMs)
    if (!possible[at] || gapOf(frames[at - 1], frame) > 0) run = []
    if (!possible[at] && !isBlocked) continue
    const after = frame.count - frame.before
    const isCounted = isWhole(limit) && blockMs === 0 && frame.costMax > 0
    refused += isCounted ? Math.min(after - frame.safe, frame.count - Math.floor(capacity / frame.costMax)) : after
    if (isWhole(limit) || blockMs > 0) continue
    run.push(frame)
    if (run.length < runLength) continue
    refused -= spared(limit, run)
    run = []
  }
  return refused
}

/** How often a limit refused from `fromMs` on. The demands ascend, a minute each. */
export function refusedBetween(limit: Limit, demands: Iterable<MinuteDemand>, parts: IntervalParts): Interval {
  const frames = framed(limit, demands, parts)
  const surely = limit.algorithm === 'token_bucket' ? surelyRefusedByBucket : surelyRefused
  return { atLeast: surely(limit, frames), atMost: possiblyRefused(limit, frames) }
}

/** The most units that a limit admits in so many minutes. */
export function mostAdmitted({ algorithm, span, size, capacity }: Limit, minutes: number): number {
  if (span.kind === 'period') return capacity * minutes
  const { windows, isAligned } = frameOf(Math.min(span.ms, minuteMs))
  if (algorithm === 'token_bucket') return capacity + (size * minutes * minuteMs) / span.ms
  if (span.ms > minuteMs) return capacity * minutes * (span.ms % minuteMs === 0 ? 1 : 2)
  return capacity * minutes * (isAligned ? minuteMs / span.ms : windows)
}

/** Units in a frame: a subject that never asks for more in one is never refused by the limit. */
export interface HarmlessDemand {
  /** Whole minutes; frames begin at multiples of it since the epoch. */
  readonly frameMs: number
  readonly units: number
}

/** Where clocks are put back, a period is as much longer. */
const clockChangeMs = 3_600_000

/** Returns the demand below which nothing can be refused, so that most subjects need no closer look. */
export function harmlessDemand(limit: Limit): HarmlessDemand {
  const { span, capacity, algorithm } = limit
  // Any period lies in two frames of this length, and any other count looks back one frame.
  const half = capacity / 2
  if (span.kind === 'period') return { frameMs: longestPeriodMs[span.unit] + clockChangeMs, units: half }
  const frameMs = frameOf(span.ms).ms
  if (algorithm === 'token_bucket') return { frameMs, units: Math.min(refillOf(limit), half) }
  return { frameMs, units: isWhole(limit) ? capacity : half }
}
