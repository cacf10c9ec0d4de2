import type { Threshold } from '../limits/limit.ts'

/** What a decision record says of one limit; `used` includes the decision's own charge. */
export interface LimitUse {
  readonly used: number
  readonly size: number
}

/** A threshold that `used` has reached. */
export interface ReachedThreshold {
  /** As claims name it: `80` for 80%, `4000u` for 4,000 units. */
  readonly name: string
  /** Of the size; of units rounded to hundredths. */
  readonly percent: number
  readonly units: number
}

const reachable = ({ size }: LimitUse, threshold: Threshold): ReachedThreshold => {
  if ('percent' in threshold) {
    const { percent } = threshold
    return { name: String(percent), percent, units: thresholdUnits(size, percent) }
  }
  const { units } = threshold
  return { name: `${units}u`, percent: Math.round((units / size) * 10_000) / 100, units }
}

/**
 * The thresholds that `used` has reached, highest first: the first is for alerting, the rest are superseded by it or
 * were claimed before. `size` is the record's, so that a raised quota has thresholds of its own. Reaching counts, not
 * crossing: the record in which usage crossed may be one that never came.
 */
export function reachedThresholds(use: LimitUse, thresholds: readonly Threshold[]): readonly ReachedThreshold[] {
  const reached = thresholds.map((threshold) => reachable(use, threshold)).filter(({ units }) => use.used >= units)
  // Of a small size several are the same unit.
  return reached.toSorted((one, other) => other.units - one.units || other.percent - one.percent)
}

/**
 * The least use of `sizeNow` at which an alert of `percent` would be raised. `percent` is what the alert says, of the
 * size that it names: of a threshold in units it is rounded, so the threshold is looked up.
 */
export function alertingUnits(
  { percent, size }: { readonly percent: number; readonly size: number },
  sizeNow: number,
  thresholds: readonly Threshold[],
): number {
  const raisedBy = (one: Threshold) => reachable({ used: 0, size }, one).percent === percent
  return reachable({ used: 0, size: sizeNow }, thresholds.find(raisedBy) ?? { percent }).units
}

/** The least use that is `percent` of `size`, rounded up; exact for every safe integer. */
export const thresholdUnits = (size: number, percent: number): number =>
  Math.floor(size / 100) * percent + Math.ceil(((size % 100) * percent) / 100)
