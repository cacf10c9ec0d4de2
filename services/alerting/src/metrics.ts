import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'

/** Each metric with the counter that it shows. docs/operating.md says what each is for. */
const metrics = {
  weir_decisions_watched_total: ['read', 'Decision records read by alerting'],
  // Metering keeps them as dead letters.
  weir_decisions_unreadable_total: ['unreadable', 'Of them, those that could not be read'],
  weir_alerts_raised_total: ['raised', 'Alerts published'],
  weir_alerts_superseded_total: ['superseded', 'Alerts that a higher one replaced'],
  weir_alerts_late_total: ['late', 'Alerts of periods that were over: kept, not sent'],
  weir_alerts_forgotten_total: ['forgotten', 'Alerts that Redis had forgotten and ClickHouse knew: not raised again'],
  weir_alerts_silenced_total: ['silenced', 'Alerts that a silence kept from their endpoints'],
  weir_deliveries_total: ['delivered', 'Webhooks that an endpoint took'],
  weir_delivery_failures_total: ['failedAttempts', 'Attempts that failed'],
  weir_deliveries_given_up_total: ['givenUp', 'Alerts that an endpoint never took'],
  weir_deliveries_dropped_total: ['dropped', 'Alerts not sent, because their endpoint is disabled or gone'],
  weir_deliveries_recreated_total: ['recreated', 'Deliveries that the queue had lost, queued again'],
} as const

/** The counters of a process, from its start on. */
export type Counters = Record<(typeof metrics)[keyof typeof metrics][0], number>

/** Returns the counters of a process that starts. */
export const noCounts = () => Object.fromEntries(Object.values(metrics).map(([counter]) => [counter, 0])) as Counters

/** Registers what alerting counts. */
export function registerMetrics(
  register: Registry,
  counters: Counters,
  now: { readonly circuitsOpen: () => number },
): void {
  for (const [name, [counter, help]] of Object.entries(metrics)) {
    registerScraped(register, { [name]: { help, read: () => counters[counter] } })
  }
  registerScraped(register, {
    weir_endpoint_circuits_open: { help: 'Endpoints left alone for a while', read: now.circuitsOpen },
  })
}
