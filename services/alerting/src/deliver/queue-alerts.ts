import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryOutcome, DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { formatTs, parseTs } from '@weir/contracts/timestamp.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { RecordDeliveries } from './ports.ts'
import { giveUpAfterMs } from './retry-schedule.ts'

/** Builds a job for its first attempt. */
function firstJob(alert: AlertV1, endpoint: string, fromMs: number, requestedMs = 0): DeliveryJob {
  return { alert, endpoint, requestedMs, attempts: 0, dueMs: fromMs, giveUpMs: fromMs + giveUpAfterMs }
}

/** Builds the row of a waiting job; it is the same however often it is written. */
function waitingRow({ alert, endpoint, dueMs }: DeliveryJob, outcome: DeliveryOutcome): DeliveryV1 {
  return {
    ...{ alert_id: alert.id, alert_type: alert.type, subject: alert.subject, endpoint, attempt: 0 },
    ...{ at: formatTs(dueMs), outcome, status: 0, ms: 0, error: '', next_try: formatTs(dueMs), answer: '' },
  }
}

/**
 * Returns the function that turns alerts into jobs, one for each endpoint, and into rows of `deliveries`, from which
 * the sweep restores jobs that Redis lost. Safe to repeat.
 */
export function createQueuer(options: {
  readonly queue: Pick<Dispatcher, 'enqueue'>
  readonly record: RecordDeliveries
  readonly clock: Clock
  /** Returns the endpoints of an alert, by the policy in force. */
  readonly endpointsFor: (alert: AlertV1) => readonly string[]
}): (alerts: readonly AlertV1[]) => Promise<void> {
  const { queue, record, clock, endpointsFor } = options
  return async function queueAlerts(alerts) {
    const jobs = alerts.flatMap((alert) => {
      const raisedMs = Date.parse(alert.time)
      // An old alert comes only from a topic that is read from its beginning: it was delivered, or given up, long ago.
      if (clock.nowMs() - raisedMs > giveUpAfterMs) return []
      return endpointsFor(alert).map((endpoint) => firstJob(alert, endpoint, raisedMs))
    })
    if (jobs.length === 0) return
    await queue.enqueue(jobs)
    await record(jobs.map((job) => waitingRow(job, 'queued')))
  }
}

/**
 * Returns the function that queues a job for each requested redelivery. Alerts that ClickHouse does not have are
 * skipped.
 */
export function createRequeuer(options: {
  readonly queue: Pick<Dispatcher, 'enqueue'>
  readonly readAlerts: (ids: readonly string[]) => Promise<readonly AlertV1[]>
}): (deliveries: readonly DeliveryV1[]) => Promise<void> {
  const { queue, readAlerts } = options
  return async function requeue(deliveries) {
    const requested = deliveries.filter(({ outcome }) => outcome === 'requested')
    if (requested.length === 0) return
    const alerts = await readAlerts([...new Set(requested.map(({ alert_id }) => alert_id))])
    const byId = new Map(alerts.map((alert) => [alert.id, alert]))
    const jobs = requested.flatMap(({ alert_id, endpoint, at }) => {
      const alert = byId.get(alert_id)
      const atMs = parseTs(at)
      return alert === undefined || atMs === undefined ? [] : [firstJob(alert, endpoint, atMs, atMs)]
    })
    await queue.enqueue(jobs)
  }
}
