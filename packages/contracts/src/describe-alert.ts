import { average, count as number, quantity, written } from '@weir/core/format.ts'
import { quoted, unlinked } from '@weir/core/printable.ts'
import type { AlertOf, AlertV1 } from './alert.v1.ts'

/** Formats a time to the minute, which is precise enough for quotas. An alert of an older Weir may lack one. */
function time(rfc3339?: string): string {
  const at = new Date(rfc3339 ?? '')
  // Whatever is in its record, an alert is delivered.
  if (Number.isNaN(at.getTime())) return rfc3339 || '–'
  return `${written('date', 'UTC', at)}, ${written('minute', 'UTC', at)} UTC`
}

/** Returns how a subject reads before *refused* and after *from*. */
function namesOf(subject: string): readonly [who: string, whose: string] {
  if (subject === '_all') return ['All subjects together are', 'all subjects']
  if (subject === '_unauthenticated') return ['Callers without a valid key are', 'callers without a valid key']
  return [`${subject} is`, subject]
}

/** A line for each value that the limit counted by: `ip: 192.0.2.1`. All but addresses are words of callers. */
const countedBy = (by: Readonly<Record<string, string>> = {}) =>
  Object.entries(by).map(([part, value]) => `${part}: ${part === 'ip' ? value : quoted(value)}`)

/** How much of a size is used: `16 USD of 20 USD`, `80 of 100 tokens`. */
function usedOf({ used, size, unit, currency }: AlertOf<'weir.quota.forecast' | 'weir.quota.reached'>['data']) {
  const what = unit === undefined || currency !== undefined ? '' : ` ${unit}`
  return `Used: ${quantity(used, currency)} of ${quantity(size, currency)}${what}`
}

/** Returns a line for each alert that a digest names. */
export const digestLines = ({ data: { alerts = [] } }: AlertOf<'weir.alerts.digest'>): readonly string[] =>
  alerts.map((one) => `${time(one.time)}: ${one.title}`)

function describeDigest(alert: AlertOf<'weir.alerts.digest'>) {
  const { data } = alert
  const subject = unlinked(alert.subject)
  const { count, digest, period_start, period_end, alerts = [] } = data
  const more = count - alerts.length
  const what = count === 1 ? 'alert' : 'alerts'
  return {
    title: `${number(count)} ${what} about ${subject} in a ${digest === 'weekly' ? 'week' : 'day'}`,
    lines: [
      `From ${time(period_start)} to ${time(period_end)}`,
      ...digestLines(alert),
      ...(more > 0 ? [`and ${number(more)} more`] : []),
    ],
  }
}

const resolvedReasons: Readonly<Record<string, string>> = {
  period_ended: 'its period has ended',
  size_changed: 'the limit has changed',
  used_less: 'less is used now',
}

function describeResolved({ subject, data }: AlertOf<'weir.quota.resolved'>) {
  const { limit, percent, reason, by, resolves, reached_at } = data
  return {
    title: `Resolved: ${unlinked(subject)} has used ${percent}% of its limit ${limit}`,
    lines: [
      `Reason: ${resolvedReasons[reason] ?? reason}`,
      ...(reason === 'period_ended' ? [] : [usedOf(data)]),
      ...countedBy(by),
      `Alert: ${resolves}, ${time(reached_at)}`,
    ],
  }
}

/**
 * Describes an alert for people: a sentence, and a line for each further fact. It is plain text, which a caller escapes
 * for its markup.
 */
export function describeAlert(alert: AlertV1): { readonly title: string; readonly lines: readonly string[] } {
  // An issuer of tokens may let its users choose it.
  const subject = unlinked(alert.subject)
  switch (alert.type) {
    case 'weir.quota.reached':
    case 'weir.quota.forecast': {
      const { limit, period_start, period_end, decision_id, by } = alert.data
      const isForecast = alert.type === 'weir.quota.forecast'
      return {
        title: isForecast
          ? `At this rate, ${subject} will use up its limit ${limit} before the period ends`
          : `${subject} has used ${alert.data.percent}% of its limit ${limit}`,
        lines: [
          usedOf(alert.data),
          ...countedBy(by),
          ...(isForecast ? [`Runs out: about ${time(alert.data.runs_out)}`] : []),
          `Period: ${time(period_start)} to ${time(period_end)}`,
          `Decision: ${decision_id}`,
        ],
      }
    }
    case 'weir.quota.resolved':
      return describeResolved(alert)
    case 'weir.budget.reached': {
      const { percent, amount, budget, currency, period } = alert.data
      const title = `${subject} has reached ${percent}% of its budget`
      return { title, lines: [`Cost so far: ${amount} of ${budget} ${currency}`, `Period: ${period}`] }
    }
    case 'weir.limit.blocked': {
      const { limit, size, currency, until, decision_id, by, more } = alert.data
      if (more !== undefined) {
        return {
          title: `Further blocks of ${subject} by the limit ${limit}: ${number(more)}`,
          lines: [`In the hour until ${time(until)}`, `Latest decision: ${decision_id}`],
        }
      }
      return {
        title: `${subject} is blocked by the limit ${limit}`,
        lines: [
          ...countedBy(by),
          `Until: ${time(until)}`,
          `Limit size: ${quantity(size, currency)}`,
          `Decision: ${decision_id}`,
        ],
      }
    }
    case 'weir.denied_rate.high':
    case 'weir.allowed.high':
    case 'weir.allowed.dropped': {
      const { watch, count, usual, window_start, window_end } = alert.data
      const [who, whose] = namesOf(subject)
      const isDenied = alert.type === 'weir.denied_rate.high'
      const change = alert.type === 'weir.allowed.dropped' ? 'fewer' : 'more'
      return {
        title: isDenied
          ? `${who} refused far more often than usual`
          : `Far ${change} requests from ${whose} than usual`,
        lines: [
          `${isDenied ? 'Refused' : 'Accepted'}: ${number(count)}, usually ${average(usual)}`,
          `From ${time(window_start)} to ${time(window_end)}`,
          `Watch: ${watch}`,
        ],
      }
    }
    case 'weir.alerts.digest':
      return describeDigest(alert)
    case 'weir.endpoint.disabled':
      return {
        title: `The endpoint ${alert.data.endpoint} is disabled and receives no more alerts`,
        lines: [`Reason: ${alert.data.reason}`, 'weir alerts test-endpoint enables it again if the test succeeds.'],
      }
    case 'weir.endpoint.test':
      return {
        title: `Test of the endpoint ${alert.data.endpoint}`,
        lines: ['This is a test alert. No action is needed.'],
      }
  }
}
