/** What a decision record says of one limit; `used` includes the decision's own charge. */
export interface LimitUse {
  readonly used: number
  readonly size: number
}

/**
 * The thresholds (percent of the size) that `used` has reached, highest first: the first is for alerting, the rest are
 * superseded by it or were claimed before. `size` is the record's, so that a raised quota has thresholds of its own.
 * Reaching counts, not crossing: the record in which usage crossed may be one that never came.
 */
export function reachedThresholds({ used, size }: LimitUse, thresholds: readonly number[]): readonly number[] {
  let reached = none
  for (const percent of thresholds) {
    if (used < thresholdUnits(size, percent)) break
    if (reached.length === 0) reached = []
    reached.unshift(percent)
  }
  return reached
}

/** The least use that is `percent` of `size`, rounded up; exact for every safe integer. */
export function thresholdUnits(size: number, percent: number): number {
  return Math.floor(size / 100) * percent + Math.ceil(((size % 100) * percent) / 100)
}

const none: number[] = []
