import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { Redis } from 'ioredis'
import type { AlertTopic } from '../raise/ports.ts'
import { createDeliveryRecorder } from '../record/delivery-recorder.ts'
import { readAlerts, readUnfinishedJobs } from '../record/read-alerts.ts'
import { repeatUntilStopped } from '../until-stopped.ts'
import { chooseEndpoints } from './choose-endpoints.ts'
import { createDeliverer, type DeliverCounters } from './deliver-alert.ts'
import { createDisabledEndpoints } from './disabled-endpoints.ts'
import { createDispatcher } from './dispatcher.ts'
import { EndpointLimiter } from './endpoint-limiter.ts'
import type { EndpointSecrets } from './endpoint-secrets.ts'
import type { RecordDeliveries } from './ports.ts'
import { createQueuer, createRequeuer } from './queue-alerts.ts'
import { createAlertSender } from './send-alert.ts'
import { createEmailSender } from './send-email.ts'
import { createSlackSender } from './send-slack.ts'
import { createWebhookSender } from './send-webhook.ts'
import { createSweep, type SweepCounters } from './sweep.ts'

/**
 * Jobs that Redis lost are queued again within this time plus the time that rows need to reach ClickHouse. Every
 * process sweeps; a job is made once.
 */
const sweepEveryMs = 15_000

export interface Deliveries {
  /** Queues the jobs of alerts. Safe to repeat. */
  queue(alerts: readonly AlertV1[]): Promise<void>
  /** Queues the jobs of deliveries that a person requested again. Safe to repeat. */
  requeue(deliveries: readonly DeliveryV1[]): Promise<void>
  /** Returns how many endpoints have an open circuit. */
  circuitsOpen(): number
  close(): Promise<void>
}

interface DeliveriesOptions {
  readonly queueRedis: Redis
  readonly clickhouse: ClickHouseClient
  readonly sender: RecordSender
  readonly topic: AlertTopic
  readonly policyInForce: () => Policy
  readonly secrets: EndpointSecrets
  /** Both empty for none. */
  readonly proxyUrl: () => string
  readonly smtp: { readonly smtpUrl: () => string; readonly from: string }
  readonly counters: DeliverCounters & SweepCounters
  readonly clock: Clock
  readonly crash: CrashPoint
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Opens the senders of alerts: webhook, Slack, mail. */
function openWays({ secrets, clock, proxyUrl, smtp }: DeliveriesOptions) {
  const outgoing = createOutgoing({ proxyUrl })
  const email = createEmailSender(smtp)
  return {
    send: createAlertSender({
      webhook: createWebhookSender({ outgoing, secrets, clock }),
      slack: createSlackSender({ outgoing, secrets, clock }),
      email: email.send,
    }),
    async close() {
      await outgoing.close()
      email.close()
    },
  }
}

/** Opens the queue of deliveries with its workers and its sweep. */
export function openDeliveries(options: DeliveriesOptions): Deliveries {
  const { queueRedis, clickhouse, sender, topic, policyInForce, counters, clock, crash, stopping, log } = options
  const ways = openWays(options)
  const limiter = new EndpointLimiter()
  const disabled = createDisabledEndpoints(queueRedis, clock)
  const record = logged(createDeliveryRecorder({ sender, stopping, log }), log)
  const deliver = createDeliverer({
    endpointOf: (name) => policyInForce().endpoints.get(name),
    limiter,
    send: ways.send,
    record,
    reasonNot: (endpoint) => disabled.reasonFor(endpoint),
    async disable(endpoint, reason) {
      log.warn({ endpoint: endpoint.name, reason }, 'endpoint disabled')
      await disabled.disable(endpoint, reason, (alert) => topic.publish([alert]))
    },
    enable: (endpoint) => disabled.enable(endpoint),
    clock,
    random: Math.random,
    counters,
    crash,
  })
  const queue = createDispatcher({ deliver, redis: queueRedis, clock, log })
  const sweep = createSweep({ queue, readUnfinished: () => readUnfinishedJobs(clickhouse), counters, log })
  const swept = repeatUntilStopped(async () => {
    await sweep().catch((error: unknown) => log.warn({ err: error }, 'sweep failed, trying again'))
    return sweepEveryMs
  }, stopping)
  return {
    queue: createQueuer({ queue, record, clock, endpointsFor: (alert) => chooseEndpoints(alert, policyInForce()) }),
    requeue: createRequeuer({ queue, readAlerts: (ids) => readAlerts(clickhouse, ids) }),
    circuitsOpen: () => limiter.openCount(clock.nowMs()),
    async close() {
      await queue.close()
      await swept
      await ways.close()
    },
  }
}

/** Logs every attempt with the reason of a failure, and never what was sent. */
function logged(record: RecordDeliveries, log: Logger): RecordDeliveries {
  return (deliveries) => {
    for (const { alert_id, endpoint, attempt, outcome, status, ms, error } of deliveries) {
      if (outcome === 'queued') continue
      const what = { alert_id, endpoint, attempt, outcome, status, ms }
      if (outcome === 'delivered') log.info(what, 'alert delivered')
      else log.warn({ ...what, error }, 'alert not delivered')
    }
    return record(deliveries)
  }
}
