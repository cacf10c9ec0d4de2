import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type ConnectionOptions, Queue, UnrecoverableError, Worker } from 'bullmq'
import type { EndpointSecrets } from './endpoint-secrets.ts'
import type { WebhookSender } from './webhooks/deliver-webhook.ts'

/** What a job carries: the alert as it was published, and where it goes. The secret stays in the environment. */
interface DeliveryJob {
  readonly endpoint: string
  readonly alert: AlertV1
}

const queueName = 'weir-deliveries'
/** Attempts of one delivery, and the pause after the first; doubling, they span about three days. */
const attemptsMax = 16
const backOffFirstMs = 5_000
/** A finished job is remembered so long: the same alert, delivered again by Kafka, finds it and is not sent twice. */
const finishedKeptSeconds = 48 * 3_600
/** Sends at a time. */
const concurrency = 16

export interface DispatchCounters {
  delivered: number
  failedAttempts: number
}

export interface Dispatcher {
  /** Queues an alert for every endpoint of the policy in force; resolves when all jobs are in Redis. Safe to repeat. */
  enqueue(alert: AlertV1): Promise<void>
  close(): Promise<void>
}

/** The body of the webhook: what happened, when, to whom. The alert's id travels as `webhook-id`. */
function webhookBody({ type, subject, time, data }: AlertV1): string {
  return JSON.stringify({ type, timestamp: time, data: { subject, ...data } })
}

export function createDispatcher(options: {
  readonly endpoints: EndpointSecrets
  readonly sender: WebhookSender
  readonly connection: ConnectionOptions
  readonly counters: DispatchCounters
  readonly log: Logger
}): Dispatcher {
  const { endpoints, sender, connection, counters, log } = options
  const queue = new Queue<DeliveryJob>(queueName, {
    connection,
    defaultJobOptions: {
      attempts: attemptsMax,
      backoff: { type: 'exponential', delay: backOffFirstMs, jitter: 0.3 },
      removeOnComplete: { age: finishedKeptSeconds },
      removeOnFail: { age: finishedKeptSeconds },
    },
  })
  const worker = new Worker<DeliveryJob>(
    queueName,
    async ({ data: { endpoint: name, alert }, attemptsMade }) => {
      const found = endpoints.get(name)
      if (found === undefined) throw new UnrecoverableError(`the policy has no endpoint ${name} any more`)
      const { endpoint, secret } = found
      const ids = { alert_id: alert.id, endpoint: name, attempt: attemptsMade + 1 }
      try {
        if (secret === undefined) throw new Error(`${endpoint.secretEnv} holds no secret`)
        const status = await sender.send(endpoint, secret, { id: alert.id, body: webhookBody(alert) })
        counters.delivered += 1
        log.info({ ...ids, status }, 'delivered')
      } catch (error) {
        counters.failedAttempts += 1
        log.warn({ ...ids, err: error }, 'delivery attempt failed')
        throw error
      }
    },
    { connection, concurrency },
  )
  const onError = (error: Error) => log.warn({ err: error }, 'queue')
  queue.on('error', onError)
  worker.on('error', onError)

  return {
    async enqueue(alert) {
      const jobs = endpoints.names().map((endpoint) => ({
        name: alert.type,
        data: { endpoint, alert },
        // The pair is the job: Kafka may hand the alert over again.
        opts: { jobId: `${alert.id}.${endpoint}` },
      }))
      await queue.addBulk(jobs)
    },
    async close() {
      await worker.close()
      await queue.close()
    },
  }
}
