import type { LimitUse } from './reached-thresholds.ts'

/** Before this share of a period nothing is forecast: the first requests of a day say little of it. */
const leastShare = 1 / 10

/** How fast a quota is used: so many units in so long. */
export interface Pace {
  readonly units: number
  readonly ms: number
}

/**
 * Returns when a quota is used up if its use goes on at this pace: now, if it is used up already. Undefined if that is
 * not before the period's end.
 */
export function runsOutAtPaceMs(
  { used, size }: LimitUse,
  { units, ms }: Pace,
  { nowMs, endMs }: { readonly nowMs: number; readonly endMs: number },
): number | undefined {
  if (used >= size) return nowMs
  const outMs = nowMs + Math.floor(((size - used) * ms) / units)
  return outMs < endMs ? outMs : undefined
}

/**
 * Returns when a quota is used up if its use goes on as in the period so far: a straight line through the start and
 * now. Undefined if that is not before the period's end, if it is used up already, and in the first tenth of a period.
 */
export function runsOutMs(
  { used, size }: LimitUse,
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
  nowMs: number,
): number | undefined {
  const elapsedMs = nowMs - startMs
  if (used <= 0 || used >= size || elapsedMs < (endMs - startMs) * leastShare) return undefined
  return runsOutAtPaceMs({ used, size }, { units: used, ms: elapsedMs }, { nowMs, endMs })
}
