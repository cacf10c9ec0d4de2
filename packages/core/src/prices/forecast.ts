import type { RouteUsage } from './quote.ts'

/** The pace of less than a day says nothing of a month. */
const observedMsMin = 86_400_000

/** A period in milliseconds since the epoch; its end is not part of it. */
export interface Period {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Extends what was used before `untilMs` to the whole period, at the mean pace so far, in whole units rounded down.
 *
 * @returns undefined within the period's first day. After its end, the usage as it is.
 */
export function forecastUsage(
  usage: readonly RouteUsage[],
  { fromMs, toMs }: Period,
  untilMs: number,
): readonly RouteUsage[] | undefined {
  const observedMs = Math.min(untilMs, toMs) - fromMs
  if (observedMs < observedMsMin) return undefined
  const extend = (count: bigint) => (count * BigInt(toMs - fromMs)) / BigInt(observedMs)
  return usage.map(({ route, units, decisions }) => ({ route, units: extend(units), decisions: extend(decisions) }))
}
