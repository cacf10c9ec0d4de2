import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { DeliverCounters } from './deliver/deliver-alert.ts'
import type { SweepCounters } from './deliver/sweep.ts'
import type { AlertCounters } from './raise/raise-alerts.ts'
import type { WatchCounters } from './watch/watch-decisions.ts'

type Counters = AlertCounters & WatchCounters & DeliverCounters & SweepCounters

/** What a process begins with. */
export const noCounts = (): Counters => ({
  ...{ read: 0, unreadable: 0 },
  ...{ raised: 0, superseded: 0, late: 0, forgotten: 0 },
  ...{ delivered: 0, failedAttempts: 0, givenUp: 0, dropped: 0, recreated: 0 },
})

/** What alerting counts. docs/operating.md says what each is for. */
export function registerMetrics(
  register: Registry,
  counters: Counters,
  now: { readonly circuitsOpen: () => number },
): void {
  registerScraped(register, {
    weir_decisions_watched_total: { help: 'Decision records read by alerting', read: () => counters.read },
    weir_decisions_unreadable_total: { help: 'Of them, those that could not be read', read: () => counters.unreadable },
    weir_alerts_raised_total: { help: 'Alerts published', read: () => counters.raised },
    weir_alerts_superseded_total: { help: 'Alerts that a higher one replaced', read: () => counters.superseded },
    weir_alerts_late_total: { help: 'Alerts of periods that were over: kept, not sent', read: () => counters.late },
    weir_alerts_forgotten_total: {
      help: 'Alerts that Redis had forgotten and ClickHouse knew: not raised again',
      read: () => counters.forgotten,
    },
    weir_deliveries_total: { help: 'Webhooks that an endpoint took', read: () => counters.delivered },
    weir_delivery_failures_total: { help: 'Attempts that failed', read: () => counters.failedAttempts },
    weir_deliveries_given_up_total: { help: 'Alerts that an endpoint never took', read: () => counters.givenUp },
    weir_deliveries_dropped_total: {
      help: 'Alerts not sent, because their endpoint is disabled or gone',
      read: () => counters.dropped,
    },
    weir_deliveries_recreated_total: {
      help: 'Deliveries that the queue had lost, queued again',
      read: () => counters.recreated,
    },
    weir_endpoint_circuits_open: { help: 'Endpoints left alone for a while', read: now.circuitsOpen },
  })
}
