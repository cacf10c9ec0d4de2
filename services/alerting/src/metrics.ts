import { alertTypes } from '@weir/core/alerts/alert-types.ts'
import type { Target } from '@weir/policy/policy.ts'
import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Polled } from '@weir/runtime/start-polling.ts'
import type { Registry } from 'prom-client'
import { channelNames } from './deliver/channels/channels.ts'

/** The channels, and `unknown` where the policy has the endpoint no more. */
const deliveryTypes: readonly (Target['type'] | 'unknown')[] = [...channelNames, 'unknown']

/** The console publishes these, for alerting to deliver. */
const publishedElsewhere = 'weir.endpoint.test'

const noDeliveries = () => ({
  /** As the outcomes of rows. */
  results: { delivered: 0, failed: 0, given_up: 0, dropped: 0 },
  delaySeconds: new Histogram(buckets.pipeline),
  attemptSeconds: new Histogram(buckets.http),
})

type Deliveries = ReturnType<typeof noDeliveries>

/** Returns the counters of a process that starts. */
export const noCounts = () => ({
  read: 0,
  unreadable: 0,
  raised: Object.fromEntries(alertTypes.filter((type) => type !== publishedElsewhere).map((type) => [type, 0])),
  suppressed: { superseded: 0, late: 0, forgotten: 0, silenced: 0 },
  recreated: 0,
  /** From a decision until Kafka has the alert about it. */
  alertSeconds: new Histogram(buckets.pipeline),
  deliveries: Object.fromEntries(deliveryTypes.map((type) => [type, noDeliveries()])) as Record<
    Target['type'] | 'unknown',
    Deliveries
  >,
})

/** What a process counts from its start on. */
export type Counters = ReturnType<typeof noCounts>

/** How many deliveries are in the queue, and how long the oldest that is ready has been so. */
export interface QueueState {
  readonly waiting: { readonly ready: number; readonly delayed: number; readonly active: number }
  /** 0 without one. */
  readonly oldestReadyMs: number
}

/** Registers what alerting counts. docs/monitoring.md says what each is for. */
export function registerMetrics(
  register: Registry,
  counters: Counters,
  now: { readonly circuitsOpen: () => Readonly<Record<string, number>>; readonly queue: Polled<QueueState> },
): void {
  const byType = Object.entries(counters.deliveries)
  const histograms = (of: (deliveries: Deliveries) => Histogram) => () =>
    byType.map(([type, deliveries]) => [[type], of(deliveries)] as const)
  registerScraped(register, {
    weir_decisions_watched_total: { help: 'Decision records read by alerting', read: () => counters.read },
    // Metering keeps them as dead letters.
    weir_decisions_unreadable_total: { help: 'Unreadable decision records', read: () => counters.unreadable },
    weir_alerts_raised_total: { help: 'Alerts published', label: 'type', readAll: () => counters.raised },
    weir_alerts_suppressed_total: {
      help: 'Alerts that were not sent to anyone',
      label: 'cause',
      readAll: () => counters.suppressed,
    },
    weir_alert_delay_seconds: {
      help: 'Time from a decision until Kafka has its alert',
      histogram: counters.alertSeconds,
    },
    weir_deliveries_total: {
      help: 'Deliveries by result',
      labels: ['type', 'result'],
      cells: () =>
        byType.flatMap(([type, { results }]) =>
          Object.entries(results).map(([result, count]) => [[type, result], count] as const),
        ),
    },
    weir_delivery_delay_seconds: {
      help: 'Time from an alert until an endpoint accepted it',
      labels: ['type'],
      histograms: histograms(({ delaySeconds }) => delaySeconds),
    },
    weir_delivery_attempt_duration_seconds: {
      help: 'Duration of a delivery attempt',
      labels: ['type'],
      histograms: histograms(({ attemptSeconds }) => attemptSeconds),
    },
    weir_deliveries_recreated_total: {
      help: 'Deliveries lost by the queue and queued again',
      read: () => counters.recreated,
    },
    weir_deliveries_waiting: {
      help: 'Deliveries in the queue',
      label: 'state',
      readAll: () => now.queue.answer?.waiting ?? {},
    },
    weir_deliveries_oldest_ready_seconds: {
      help: 'Age of the oldest delivery that is due',
      labels: [],
      cells: () => (now.queue.answer === undefined ? [] : [[[], now.queue.answer.oldestReadyMs / 1_000]]),
    },
    weir_endpoint_circuits_open: {
      help: 'Endpoints whose deliveries are held back',
      label: 'endpoint',
      readAll: now.circuitsOpen,
    },
  })
}
