import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { DispatchCounters } from './dispatch.ts'
import type { AlertCounters } from './raise-alerts.ts'
import type { WatchCounters } from './watch-decisions.ts'

type Counters = AlertCounters & WatchCounters & DispatchCounters

/** What a process begins with. */
export const noCounts = (): Counters => ({
  ...{ read: 0, unreadable: 0 },
  ...{ raised: 0, superseded: 0, late: 0 },
  ...{ delivered: 0, failedAttempts: 0 },
})

/** What alerting counts. docs/operating.md says what each is for. */
export function registerMetrics(register: Registry, counters: Counters): void {
  registerScraped(register, {
    weir_decisions_watched_total: { help: 'Decision records read by alerting', read: () => counters.read },
    weir_decisions_unreadable_total: { help: 'Of them, those that could not be read', read: () => counters.unreadable },
    weir_alerts_raised_total: { help: 'Alerts published', read: () => counters.raised },
    weir_alerts_superseded_total: { help: 'Alerts that a higher one replaced', read: () => counters.superseded },
    weir_alerts_late_total: { help: 'Alerts of periods that were over', read: () => counters.late },
    weir_deliveries_total: { help: 'Webhooks that an endpoint took', read: () => counters.delivered },
    weir_delivery_failures_total: { help: 'Attempts that failed', read: () => counters.failedAttempts },
  })
}
