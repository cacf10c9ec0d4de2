import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { formatTs, parseTs } from '@weir/contracts/timestamp.ts'
import type { Clock } from '@weir/core/clock.ts'
import { confirmHashOf, targetsOf } from '@weir/policy/contact-targets.ts'
import type { Endpoint, Policy } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Counters } from '../metrics.ts'
import { readAlerts, readUnfinishedJobs } from '../record/alert-table.ts'
import type { DeliveryJob, RecordDeliveries } from '../types.ts'
import { isForCustomer } from './customer-filter.ts'
import type { Dispatcher } from './dispatcher.ts'
import { findSilence, isChosen } from './silence.ts'

/**
 * Returns the names of the targets of an alert: every endpoint whose `only` selects it, and of one of type `subject`
 * the addresses of the subject's contact. A test is sent to its own endpoint alone, whatever its `only` selects. The
 * alert about a disabled endpoint is sent to the others. A contact gets only what a customer may know. A digest, raised
 * by a release before 0.11, is sent by the endpoint that it names.
 */
export function chooseTargets(
  alert: AlertV1,
  policy: Pick<Policy, 'endpoints' | 'contacts' | 'unsubscribed' | 'ownAlerts' | 'limits' | 'subjects'>,
): readonly string[] {
  // A link to confirm an address is a test of that address alone.
  if (alert.type === 'weir.endpoint.test' && confirmHashOf(alert.data.endpoint) !== undefined)
    return [alert.data.endpoint]
  const all = [...policy.endpoints.values()]
  const chosen = all.filter((endpoint) => {
    const { name, type } = endpoint
    if (alert.type === 'weir.endpoint.test') return name === alert.data.endpoint
    if (alert.type === 'weir.alerts.digest') return type === 'subject' && name === alert.data.endpoint
    if (alert.type === 'weir.endpoint.disabled' && name === alert.data.endpoint) return false
    return (type !== 'subject' || isForCustomer(alert, policy)) && isSelected(endpoint, alert)
  })
  return chosen.flatMap((endpoint) =>
    endpoint.type === 'subject' ? targetsOf(endpoint, policy, alert.subject).map(({ name }) => name) : [endpoint.name],
  )
}

/**
 * Whether an endpoint selects an alert. Chats and PagerDuty get the end of each alert that they get, because the words
 * are Weir's. A list of types for a webhook is exact: its receiver may know no others. Mail has ends only where its
 * list names them: they would fill mailboxes at the start of each month.
 */
function isSelected({ type, only }: Endpoint, alert: AlertV1): boolean {
  if (alert.type !== 'weir.quota.resolved' || only.types?.includes(alert.type) === true) return isChosen(only, alert)
  const { types, ...others } = only
  if (type === 'email' || type === 'subject' || (type === 'webhook' && types !== undefined)) return false
  return types?.includes('weir.quota.reached') !== false && isChosen(others, alert)
}

/** Builds a job for its first attempt. */
function firstJob(alert: AlertV1, endpoint: string, fromMs: number, requestedMs = 0): DeliveryJob {
  return { alert, endpoint, requestedMs, attempts: 0, dueMs: fromMs, giveUpMs: fromMs + giveUpAfterMs }
}

/** Builds the row of a queued job; it is the same however often it is written. */
export function queuedRow({ alert, endpoint, dueMs }: DeliveryJob): DeliveryV1 {
  return {
    alert_id: alert.id,
    alert_type: alert.type,
    subject: alert.subject,
    endpoint,
    attempt: 0,
    at: formatTs(dueMs),
    outcome: 'queued',
    status: 0,
    ms: 0,
    error: '',
    next_try: formatTs(dueMs),
    answer: '',
  }
}

/** Builds the row of an alert that is not sent to an endpoint; it is the same however often it is written. */
const silencedRow = (job: DeliveryJob, silence: string): DeliveryV1 => ({
  ...queuedRow(job),
  outcome: 'silenced',
  next_try: null,
  error: `by the silence ${silence}`,
})

/** Returns what turns alerts, requests and unfinished deliveries into jobs of the queue. */
export function createQueueing(options: {
  readonly queue: Dispatcher
  readonly record: RecordDeliveries
  readonly clickhouse: ClickHouseClient
  readonly policyInForce: () => Policy
  readonly counters: Counters
  readonly clock: Clock
  readonly log: Logger
}) {
  const { queue, record, clickhouse, policyInForce, counters, clock, log } = options
  return {
    /**
     * Queues a job for each target of each alert, by the policy in force, and records it in `deliveries`, from which
     * the sweep restores jobs that Redis lost. For an alert that falls under a silence, it records that instead. Safe
     * to repeat.
     */
    async queueAlerts(alerts: readonly AlertV1[]): Promise<void> {
      const policy = policyInForce()
      const jobs: DeliveryJob[] = []
      const silenced: DeliveryV1[] = []
      let silencedAlerts = 0
      for (const alert of alerts) {
        const raisedMs = Date.parse(alert.time)
        // An old alert comes only from a topic that is read from its beginning: it was delivered or given up long ago.
        if (clock.nowMs() - raisedMs > giveUpAfterMs) continue
        const silence = findSilence(alert, policy)
        const found = chooseTargets(alert, policy).map((endpoint) => firstJob(alert, endpoint, raisedMs))
        if (silence === undefined) {
          jobs.push(...found)
          continue
        }
        silenced.push(...found.map((job) => silencedRow(job, silence)))
        // An alert that no endpoint selects is kept from none.
        if (found.length > 0) silencedAlerts += 1
      }
      if (jobs.length > 0) await queue.enqueue(jobs)
      const rows = [...jobs.map(queuedRow), ...silenced]
      if (rows.length > 0) await record(rows)
      // After the record: a batch whose record failed is queued again, and would count twice.
      counters.suppressed.silenced += silencedAlerts
    },

    /** Queues a job for each requested redelivery of an alert that ClickHouse has. Safe to repeat. */
    async requeue(deliveries: readonly DeliveryV1[]): Promise<void> {
      const requested = deliveries.filter(({ outcome }) => outcome === 'requested')
      if (requested.length === 0) return
      const alerts = await readAlerts(
        clickhouse,
        requested.map(({ alert_id }) => alert_id),
      )
      const jobs = requested.flatMap(({ alert_id, endpoint, at }) => {
        const alert = alerts.get(alert_id)
        const atMs = parseTs(at)
        return alert === undefined || atMs === undefined ? [] : [firstJob(alert, endpoint, atMs, atMs)]
      })
      await queue.enqueue(jobs)
    },

    /** Finds unfinished deliveries whose jobs Redis has lost, and queues those jobs again for the same time. */
    async sweep(): Promise<void> {
      for await (const unfinished of readUnfinishedJobs(clickhouse)) {
        const lost = await queue.missing(unfinished)
        if (lost.length === 0) continue
        await queue.enqueue(lost)
        counters.recreated += lost.length
        log.warn({ jobs: lost.length }, 'deliveries lost by the queue are queued again')
      }
    },
  }
}
