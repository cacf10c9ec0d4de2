import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import { endpointNameOf } from '@weir/policy/contact-targets.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import { LabelCells } from '@weir/runtime/label-cells.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import type { Cluster, Redis } from 'ioredis'
import type { Counters } from '../metrics.ts'
import { createDeliveryRecorder } from '../record/delivery-recorder.ts'
import { repeatUntilStopped } from '../repeat.ts'
import type { PublishAlerts } from '../types.ts'
import type { ChannelTools } from './channels/channel.ts'
import { createAlertSender } from './channels/channels.ts'
import { createMailer } from './channels/email.ts'
import { createDeliverer } from './deliver-alert.ts'
import { createDisabledEndpoints } from './disabled-endpoints.ts'
import { createDispatcher } from './dispatcher.ts'
import { EndpointLimiter } from './endpoint-limiter.ts'
import { createQueueing } from './queue-alerts.ts'
import { traceDeliveries } from './trace-deliveries.ts'

/** Endpoints with a series of their own: a process has 3,000 at most. */
const endpointsShownMax = 200
/**
 * Jobs that Redis lost are queued again within this time plus the time that rows need to reach ClickHouse. Every
 * process sweeps; a job is made once.
 */
const sweepEveryMs = 15_000

interface DeliveriesOptions extends Omit<ChannelTools, 'outgoing' | 'mailer'> {
  readonly queueRedis: Redis | Cluster
  readonly clickhouse: ClickHouseClient
  readonly sender: RecordSender
  readonly publish: PublishAlerts
  readonly policyInForce: () => Policy
  /** Empty for none, as is `smtpUrl`. */
  readonly proxyUrl: () => string
  readonly smtp: { readonly smtpUrl: () => string; readonly from: string }
  readonly counters: Counters
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined
  readonly crash: CrashPoint
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** The queue of deliveries, open. */
export type Deliveries = ReturnType<typeof openDeliveries>

/** Opens the queue of deliveries with its workers and its sweep. */
export function openDeliveries(options: DeliveriesOptions) {
  const { queueRedis, publish, policyInForce, proxyUrl, tracing, clock, stopping, log } = options
  const outgoing = createOutgoing({ proxyUrl })
  const mailer = createMailer(options.smtp)
  const limiter = new EndpointLimiter()
  const record = createDeliveryRecorder(options)
  const send = createAlertSender({ ...options, outgoing, mailer })
  const deliver = createDeliverer({
    ...options,
    limiter,
    disabled: createDisabledEndpoints({ redis: queueRedis, publish, clock, log }),
    send: tracing === undefined ? send : traceDeliveries(send, tracing),
    record,
    random: Math.random,
  })
  const queue = createDispatcher({ deliver, redis: queueRedis, clock, log })
  const { queueAlerts, requeue, sweep } = createQueueing({ ...options, queue, record })
  const swept = repeatUntilStopped(async () => {
    await sweep().catch((error: unknown) => log.warn({ err: error }, 'sweep failed, retrying'))
    return sweepEveryMs
  }, stopping)
  return {
    queueAlerts,
    requeue,
    queueState: () => queue.state(),
    /** Counts open circuits by endpoint of the policy; of a contact's there is one for each address. */
    circuitsOpen(): Readonly<Record<string, number>> {
      const { endpoints } = policyInForce()
      const cells = new LabelCells(endpointsShownMax, () => ({ open: 0 }))
      for (const name of endpoints.keys()) cells.of(name)
      for (const target of limiter.open(clock.nowMs())) {
        const name = endpointNameOf(target)
        if (endpoints.has(name)) cells.find(name).open += 1
      }
      return Object.fromEntries([...cells.entries()].map(([name, { open }]) => [name, open]))
    },
    async close(): Promise<void> {
      await queue.close()
      await swept
      await outgoing.close()
      mailer.close()
    },
  }
}
