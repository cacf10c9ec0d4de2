import type { AlertV1, DigestedAlertV1 } from '@weir/contracts/alert.v1.ts'
import { claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import type { DigestUnit, Policy } from '@weir/policy/policy.ts'
import { describeAlert } from '../deliver/describe-alert.ts'
import { isChosen } from '../deliver/find-silence.ts'
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

const dayMs = 86_400_000
/** The epoch was a Thursday: weeks begin on Monday. */
const firstMondayMs = 4 * dayMs
const lengthMs: Readonly<Record<DigestUnit, number>> = { daily: dayMs, weekly: 7 * dayMs }
/** Rows of the last minutes are on their way to ClickHouse. */
const settleMs = 5 * 60_000

/** Returns the last day or week (UTC) that is over and whose alerts are in ClickHouse. */
function lastSpan(unit: DigestUnit, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const [length, firstMs] = [lengthMs[unit], unit === 'weekly' ? firstMondayMs : 0]
  const toMs = firstMs + Math.floor((nowMs - settleMs - firstMs) / length) * length
  return { fromMs: toMs - length, toMs }
}

/** Spans that are gathered later, after a time without any process: what is older is no news. */
const missedMax = 7

/** Returns the spans that are over and not gathered yet, the oldest first; `gatheredMs` is where the last one began. */
export function spansDue(unit: DigestUnit, nowMs: number, gatheredMs: number | undefined) {
  const last = lastSpan(unit, nowMs)
  const length = lengthMs[unit]
  const firstMs = Math.max((gatheredMs ?? last.fromMs - length) + length, last.fromMs - (missedMax - 1) * length)
  const count = Math.max(0, (last.fromMs - firstMs) / length + 1)
  return Array.from({ length: count }, (_, at) => {
    const fromMs = firstMs + at * length
    return { fromMs, toMs: fromMs + length }
  })
}

/** Returns the digests of a subject's alerts, one for each endpoint of type `subject` that selects some of them. */
export function digestsOf(
  policy: Policy,
  {
    unit,
    subject,
    alerts,
  }: { readonly unit: DigestUnit; readonly subject: string; readonly alerts: readonly AlertV1[] },
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): readonly DigestDue[] {
  return [...policy.endpoints.values()].flatMap((endpoint): readonly DigestDue[] => {
    if (endpoint.type !== 'subject') return []
    const chosen = alerts.filter((alert) => isChosen(endpoint.only, alert) && mayTellCustomer(alert, policy))
    if (chosen.length === 0) return []
    const periodStart = new Date(fromMs).toISOString().slice(0, 10)
    const key = claimKey({ subject, limit: 'digest', size: endpoint.name, threshold: unit, periodStart })
    const named = chosen.slice(0, namedMax).map((alert) => {
      const { id, type, time } = alert
      return { id, type, time, title: describeAlert(alert).title }
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
