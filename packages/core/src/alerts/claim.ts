import { encodeKeyPart } from '../key-encoding.ts'
import { longestPeriodMs, type PeriodUnit } from '../limits/limit.ts'

/** One alert: a subject, a limit, a size, a threshold and a period. Equal claims are one alert. */
export interface Claim {
  readonly subject: string
  readonly limit: string
  readonly size: number
  /** `80` for 80 %, `4000u` for units, `blocked` for a block. */
  readonly threshold: string
  /** `periodStartLabel` of the period's start; `cooldown` where the claim's expiry alone ends it. */
  readonly periodStart: string
}

/**
 * The key in Redis under which an alert is claimed, once for all processes, and from which its id is made. Holds the
 * size, so that a raised quota raises its alerts again. The subject is the hash tag, as in limits' keys.
 */
export function claimKey({ subject, limit, size, threshold, periodStart }: Claim): string {
  return `quota_alert:{${encodeKeyPart(subject)}}:${encodeKeyPart(limit)}:${size}:${threshold}:${encodeKeyPart(periodStart)}`
}

/** Longer than the period by this: records of a period are read, and its clocks changed, after it began. */
const graceMs = 6 * 3_600_000

/**
 * How long a claim is kept: beyond its period's end, after which no alert of that period is sent. A day's is 30 hours.
 */
export function claimLifetimeMs(unit: PeriodUnit): number {
  return longestPeriodMs[unit] + graceMs
}
