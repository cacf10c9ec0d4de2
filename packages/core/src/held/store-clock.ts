import { algorithmFacts } from '../limits/algorithm-facts.ts'
import { type Limit, type PeriodBoundaries, shortestPeriodMs } from '../limits/limit.ts'

/** How far the clock of a limit's store is ahead of the client's, in milliseconds: at least and at most. */
export interface ClockOffset {
  readonly leastMs: number
  readonly mostMs: number
}

/** Where nothing depends on when windows begin. */
export const noOffset: ClockOffset = { leastMs: 0, mostMs: 0 }

/** One answer about a limit, by the client's clock. */
export interface ClockReading {
  readonly sentMs: number
  readonly answeredMs: number
  /** Until all is unused, as the answer says it: rounded up to whole units of `unitMs`. */
  readonly resetMs: number
  readonly unitMs: number
}

/** Whether the limit's windows begin at times of a clock, so that a check of it must know that clock. */
export const followsClock = ({ algorithm }: Pick<Limit, 'algorithm'>): boolean => algorithmFacts[algorithm].followsClock

/** The end of a window or period that is nearest to a time. */
function nearestEnd({ span }: Pick<Limit, 'span'>, ms: number, boundariesAt: (ms: number) => PeriodBoundaries): number {
  if (span.kind === 'window') return Math.round(ms / span.ms) * span.ms
  const [start, next] = boundariesAt(ms)
  return ms - start < next - ms ? start : next
}

/**
 * Whether an answer is exact enough to say which end of a window it means: windows of a second are not told apart by
 * answers in whole seconds.
 */
export function tellsEnd({ span }: Pick<Limit, 'span'>, { sentMs, answeredMs, unitMs }: ClockReading): boolean {
  const spanMs = span.kind === 'window' ? span.ms : shortestPeriodMs[span.unit]
  return (answeredMs - sentMs + unitMs) * 2 < spanMs
}

/**
 * Narrows the offset by one answer: it names the end of a window by the store's clock, and the client's clock says
 * between which times that was said. Undefined where the answer contradicts those before it.
 */
export function narrowOffset(
  limit: Pick<Limit, 'span'>,
  known: ClockOffset | undefined,
  { sentMs, answeredMs, resetMs, unitMs }: ClockReading,
  boundariesAt: (ms: number) => PeriodBoundaries,
): ClockOffset | undefined {
  const middleMs = known === undefined ? 0 : (known.leastMs + known.mostMs) / 2
  const toldMs = (sentMs + answeredMs - unitMs) / 2 + resetMs
  const endMs = nearestEnd(limit, Math.round(toldMs + middleMs), boundariesAt)
  const leastMs = Math.max(known?.leastMs ?? Number.NEGATIVE_INFINITY, endMs - resetMs - answeredMs)
  // The store's clock is cut to whole milliseconds.
  const mostMs = Math.min(known?.mostMs ?? Number.POSITIVE_INFINITY, endMs - (resetMs - unitMs) + 1 - sentMs)
  return leastMs <= mostMs ? { leastMs, mostMs } : undefined
}
