import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'

/** `late`: its period was over when it came to light, and nobody was told. */
export type AlertState = 'raised' | 'late'

const timeOf = (rfc3339: string) => formatTs(Date.parse(rfc3339))
const secondOf = (rfc3339: string) => Math.floor(Date.parse(rfc3339) / 1_000)
const noDecision = '00000000-0000-0000-0000-000000000000'

/** What an alert is about, in the columns that all types share. */
function aboutOf(alert: AlertV1) {
  const nothing = { limit: '', size: 0, used: 0, percent: 0, decision_id: noDecision }
  const at = secondOf(alert.time)
  switch (alert.type) {
    case 'weir.quota.reached':
      return {
        ...alert.data,
        period_start: secondOf(alert.data.period_start),
        period_end: secondOf(alert.data.period_end),
      }
    case 'weir.limit.blocked': {
      const { limit, size, until, decision_id } = alert.data
      return { ...nothing, limit, size, decision_id, period_start: at, period_end: secondOf(until) }
    }
    case 'weir.denied_rate.high':
    case 'weir.allowed.dropped': {
      const { count, window_start: from, window_end: to } = alert.data
      return { ...nothing, used: count, period_start: secondOf(from), period_end: secondOf(to) }
    }
    case 'weir.endpoint.disabled':
    case 'weir.endpoint.test':
      return { ...nothing, period_start: at, period_end: at }
  }
}

/** A row of `weir.alerts`. */
export function alertRow(alert: AlertV1, state: AlertState) {
  const { limit, size, used, percent, decision_id, period_start, period_end } = aboutOf(alert)
  const { id, type, subject, data } = alert
  const about = { limit, size, used, percent, period_start, period_end, decision_id }
  return { id, type, subject, time: timeOf(alert.time), state, ...about, data: JSON.stringify(data) }
}
