import { encodeKeyPart } from '../key-encoding.ts'
import { longestPeriodMs, type PeriodUnit, scopeKinds } from '../limits/limit.ts'

/** One alert: a subject, a limit, a size, a threshold and a period. Equal claims are one alert. */
export interface Claim {
  readonly subject: string
  readonly limit: string
  /** Units. */
  readonly size: number
  /** `80` for 80%, `4000u` for units, `blocked` for a block. */
  readonly threshold: string
  /** `periodStartLabel` of the period's start; `cooldown` where the claim's expiry alone ends it. */
  readonly periodStart: string
  /** What the limit counted by beyond the subject, as the record has it, where each of its values is an alert. */
  readonly by?: Readonly<Record<string, string>> | undefined
}

const kinds: readonly string[] = scopeKinds

/** The values of a scope as limits' keys write them: `ip=192%2E0%2E2%2E1:header.x-team=a`. */
function scopeOfClaim(by: Readonly<Record<string, string>>): string {
  const parts = Object.entries(by).map(([text, value]) => {
    const [kind = '', ...name] = text.split(':')
    const at = kinds.indexOf(kind)
    const written = name.length === 0 ? encodeKeyPart(kind) : `${encodeKeyPart(kind)}.${encodeKeyPart(name.join(':'))}`
    return { at, text: `${written}=${encodeKeyPart(value)}` }
  })
  return parts
    .sort((a, b) => a.at - b.at || (a.text < b.text ? -1 : 1))
    .map(({ text }) => text)
    .join(':')
}

/**
 * The key in Redis under which an alert is claimed, once for all processes, and from which its id is made. Holds the
 * size, so that a raised quota raises its alerts again. The subject is the hash tag, as in limits' keys.
 */
export function claimKey({ subject, limit, size, threshold, periodStart, by = {} }: Claim): string {
  const scope = scopeOfClaim(by)
  const key = `quota_alert:{${encodeKeyPart(subject)}}:${encodeKeyPart(limit)}:${size}:${threshold}:${encodeKeyPart(periodStart)}`
  return scope === '' ? key : `${key}:${scope}`
}

/** The key under which the end of a threshold alert is claimed, by the alert's id. */
export const resolvedKey = (subject: string, alertId: string): string =>
  `quota_alert:{${encodeKeyPart(subject)}}:resolved:${alertId}`

/** Where the blocks of one subject by one limit are counted that begin within an hour. */
export const blockCountKey = (subject: string, limit: string, hourStartMs: number): string =>
  `quota_alert:{${encodeKeyPart(subject)}}:${encodeKeyPart(limit)}:blocks:${hourStartMs / 1_000}`

/** Longer than the period by this: records of a period are read, and its clocks changed, after it began. */
const graceMs = 6 * 3_600_000

/**
 * How long a claim is kept: beyond its period's end, after which no alert of that period is sent. A day's is 30 hours.
 */
export const claimLifetimeMs = (unit: PeriodUnit): number => longestPeriodMs[unit] + graceMs
