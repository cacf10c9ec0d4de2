import type { DigestSpan } from '@weir/clickhouse/digest-queries.ts'
import type { AlertV1, DigestedAlertV1 } from '@weir/contracts/alert.v1.ts'
import { claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import { periodBoundaries, periodStartLabel } from '@weir/core/calendar/calendar.ts'
import type { DigestUnit, Policy } from '@weir/policy/policy.ts'
import type { AlertTemplates } from '../deliver/alert-templates.ts'
import { isChosen } from '../deliver/find-silence.ts'
import { mailSubject } from '../deliver/mail-words.ts'
import { mayTellCustomer } from '../deliver/tell-customer.ts'
import type { Candidate } from './crossings.ts'

/** Alerts that a digest names; of the others it says how many there are. A mail of more is not read. */
const namedMax = 50

/** The alerts of a subject in a day or a week, for the addresses of its contact that want them together. */
export interface DigestDue extends Candidate {
  readonly kind: 'digest'
  readonly about: {
    readonly endpoint: string
    readonly digest: DigestUnit
    readonly count: number
    readonly alerts: readonly DigestedAlertV1[]
  }
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Days of all zones begin at a quarter hour of UTC. */
const quarterMs = 15 * 60_000
/** Zones are this far ahead of UTC, or behind it, at most. */
const [aheadMaxMs, behindMaxMs] = [14 * hourMs, 12 * hourMs]
/** The epoch was a Thursday: weeks begin on Monday. */
const firstMondayMs = 4 * dayMs
const lengthMs: Readonly<Record<DigestUnit, number>> = { daily: dayMs, weekly: 7 * dayMs }
/** Days and weeks that are gathered later, after a time without any process: what is older is no news. */
const missedMaxMs: Readonly<Record<DigestUnit, number>> = { daily: 7 * dayMs, weekly: 14 * dayMs }
/** Rows of the last minutes are on their way to ClickHouse. */
const settleMs = 5 * 60_000

/** Days or weeks that ended after one instant, and not after another. */
export interface Ended {
  readonly afterMs: number
  readonly untilMs: number
}

/**
 * Returns which ends of days or weeks are due; undefined while there can be none in any zone. `gatheredMs` is until
 * when ends were gathered before.
 */
export function endsDue(unit: DigestUnit, nowMs: number, gatheredMs: number | undefined): Ended | undefined {
  const untilMs = Math.floor((nowMs - settleMs) / quarterMs) * quarterMs
  const afterMs = Math.max(gatheredMs ?? untilMs - lengthMs[unit], untilMs - missedMaxMs[unit])
  const firstMs = unit === 'weekly' ? firstMondayMs : 0
  const endsBefore = (ms: number) => Math.floor((ms - firstMs) / lengthMs[unit])
  const isPossible = endsBefore(untilMs + aheadMaxMs) > endsBefore(afterMs - behindMaxMs)
  return afterMs < untilMs && isPossible ? { afterMs, untilMs } : undefined
}

/** The span in which alerts are that days or weeks of any zone have. Clocks are put back by two hours at most. */
export const widestSpan = (unit: DigestUnit, { afterMs, untilMs }: Ended): DigestSpan => ({
  fromMs: afterMs - lengthMs[unit] - 2 * hourMs,
  toMs: untilMs,
})

/** Returns the days or weeks of a zone that ended then, the oldest first. */
export function spansEnded(unit: DigestUnit, timeZone: string, { afterMs, untilMs }: Ended): readonly DigestSpan[] {
  const periodAt = (ms: number) => periodBoundaries(unit === 'daily' ? 'day' : 'week', timeZone, 1, ms)
  const spans: DigestSpan[] = []
  for (let [fromMs, toMs] = periodAt(afterMs); toMs <= untilMs; [fromMs, toMs] = periodAt(toMs)) {
    spans.push({ fromMs, toMs })
  }
  return spans
}

/** The time zone of a subject's days. */
export const timeZoneOf = ({ subjects }: Pick<Policy, 'subjects'>, subject: string): string =>
  subjects.get(subject)?.timeZone ?? 'UTC'

/** Returns the digests of a subject's alerts, one for each endpoint of type `subject` that selects some of them. */
export function digestsOf(
  policy: Policy,
  {
    unit,
    subject,
    alerts,
  }: { readonly unit: DigestUnit; readonly subject: string; readonly alerts: readonly AlertV1[] },
  { fromMs, toMs }: DigestSpan,
  templates: Pick<AlertTemplates, 'find'>,
): readonly DigestDue[] {
  const language = policy.contacts.get(subject)?.language
  return [...policy.endpoints.values()].flatMap((endpoint): readonly DigestDue[] => {
    if (endpoint.type !== 'subject') return []
    const chosen = alerts.filter((alert) => isChosen(endpoint.only, alert) && mayTellCustomer(alert, policy))
    if (chosen.length === 0) return []
    const periodStart = periodStartLabel('day', timeZoneOf(policy, subject), fromMs)
    const key = claimKey({ subject, limit: 'digest', size: endpoint.name, threshold: unit, periodStart })
    const named = chosen.slice(0, namedMax).map((alert) => {
      const { id, type, time } = alert
      return { id, type, time, title: mailSubject({ ...endpoint, language }, alert, templates) }
    })
    return [
      {
        ...{ kind: 'digest', subject, startMs: fromMs, endMs: toMs, isRecurring: false },
        lifetimeMs: claimLifetimeMs(unit === 'daily' ? 'day' : 'week'),
        thresholds: [{ percent: 100, key }],
        about: { endpoint: endpoint.name, digest: unit, count: chosen.length, alerts: named },
      },
    ]
  })
}
