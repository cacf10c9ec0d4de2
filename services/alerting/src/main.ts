import { clickhouseWarning, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { systemClock } from '@weir/core/clock.ts'
import { BatchConsumer, type ConsumeOptions } from '@weir/kafka/consume-batches.ts'
import { registerConsumers } from '@weir/kafka/consumer-metrics.ts'
import { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import { kafkaOptionsFrom } from '@weir/kafka/kafka-variables.ts'
import { createRecordSender, type RecordSender } from '@weir/kafka/send-records.ts'
import { ownPolicyFeed } from '@weir/policy-feed/service-policy.ts'
import { connectClaims, connectQueue } from '@weir/redis/connect.ts'
import { redisProblem, untilAllowed } from '@weir/redis/connection-state.ts'
import { problemOf } from '@weir/redis/limit-connection.ts'
import { ownSecret } from '@weir/runtime/live-secret.ts'
import { warningOf } from '@weir/runtime/ops-server.ts'
import { type Config, readConfig } from '@weir/runtime/read-config.ts'
import { releaseStartMemory } from '@weir/runtime/release-memory.ts'
import { keepHeapSmall } from '@weir/runtime/small-heap.ts'
import { startPolling } from '@weir/runtime/start-polling.ts'
import { type Service, startService } from '@weir/runtime/start-service.ts'
import { openTracing } from '@weir/runtime/tracing.ts'
import { createBatchHandlers } from './batch-handlers.ts'
import { alertingVariables } from './config.ts'
import { createAlertTemplates } from './deliver/alert-templates.ts'
import { createProblemFinder } from './deliver/endpoint-problems.ts'
import { openDeliveries } from './deliver/open-deliveries.ts'
import { findSilence } from './deliver/silence.ts'
import { type Counters, noCounts, registerMetrics } from './metrics.ts'
import { createClaimStore } from './raise/claim-store.ts'
import { AlertRaiser } from './raise/raise-alerts.ts'
import { createAlertHistory } from './record/alert-table.ts'
import { createRecordLog } from './record/record-log.ts'
import type { PublishAlerts } from './types.ts'
import { startFurtherBlocks } from './watch/further-blocks.ts'
import { createWatcher } from './watch/watch-decisions.ts'
import { startRateWatch } from './watch/watch-rates.ts'
import { startResolvedWatch } from './watch/watch-resolved.ts'

keepHeapSmall()

/**
 * Fetches of decisions and alerts: an alert is published within half a second. The size is bounded because every record
 * of a fetch becomes an object.
 */
const soon = { maxWaitMs: 250, maxBytes: 3_000_000, partitionsAtOnce: 3 }
/** Fetches for rows: an insert of one row costs ClickHouse as much as one of a thousand. */
const gathered = { maxWaitMs: 1_000, minBytes: 1_000_000, maxBytes: 2_000_000, partitionsAtOnce: 6 }

/** A look at the queue is a handful of commands. */
const queueLook = { everyMs: 5_000, deadlineMs: 2_000 } as const

/** Publishes on the public feed of alerts: CloudEvents in binary mode, keyed by subject. */
const createPublisher =
  (sender: RecordSender, { raised }: Counters): PublishAlerts =>
  async (alerts) => {
    await sender.send(topics.alerts, alerts.map(encodeAlert))
    for (const { type } of alerts) raised[type] = (raised[type] ?? 0) + 1
  }

const disconnect = (one: { disconnect(): void }) => one.disconnect()

type Consumer = Pick<
  ConsumeOptions,
  'groupId' | 'topics' | 'minBytes' | 'maxWaitMs' | 'maxBytes' | 'partitionsAtOnce' | 'onBatch'
>

/** Opens the Redis of the claims and that of the queue, which may be the same. */
async function openRedis(config: Config<typeof alertingVariables>, { run, log, checkReady }: Service) {
  const watched = { tls: config, onError: (error: Error) => log.warn({ err: error }, 'redis') }
  const claims = connectClaims(config.redisUrl, { ...watched, use: 'claims' })
  const redis = await run.own('redis', claims, disconnect)
  checkReady('redis', () => problemOf(redis))
  const queueUrl = config.queueRedisUrl.text === '' ? config.redisUrl : config.queueRedisUrl
  const queue = connectQueue(queueUrl, { ...watched, use: 'queue' })
  const queueRedis = await run.own('queue redis', queue, disconnect)
  checkReady('queue redis', () => redisProblem(queueRedis))
  await untilAllowed(queueRedis, run.stopping) // BullMQ that may not ask INFO when it opens never works again
  return { redis, queueRedis }
}

/** Returns how mail and webhooks leave: servers and keys, which may be replaced while the process runs. */
async function openWays(config: Config<typeof alertingVariables>, service: Service) {
  const { smtpUrl, outgoingProxy, unsubscribeKey } = alertingVariables
  return {
    unsubscribeKeys: await ownSecret(config.unsubscribeKey, unsubscribeKey, service),
    consoleUrl: config.consoleUrl,
    smtp: { smtpUrl: await ownSecret(config.smtpUrl, smtpUrl, service), from: config.smtpFrom },
    proxyUrl: await ownSecret(config.outgoingProxy, outgoingProxy, service),
  }
}

/** Starts consumers. A stop ends them concurrently, since each waits for the answer to its fetch. */
async function startConsumers(
  consumers: readonly Consumer[],
  around: Omit<ConsumeOptions, keyof Consumer>,
  { run, metrics, checkReady }: Service,
) {
  const started: BatchConsumer[] = []
  await run.own('consumers', started, (all) => Promise.all(all.map((one) => one.stop())))
  for (const consumer of consumers) {
    const one = new BatchConsumer({ ...around, ...consumer })
    started.push(one)
    checkReady(consumer.groupId, () => (one.status.state === 'running' ? undefined : one.status.waitingFor))
  }
  registerConsumers(metrics, started)
}

await startService(
  'alerting',
  () => readConfig(alertingVariables, process.env),
  async (config, service) => {
    const { run, log, metrics, crash, checkReady } = service
    const tracing = await openTracing(config, 'alerting', service)
    const kafka = kafkaOptionsFrom(config, 'weir-alerting', log)
    const feed = await ownPolicyFeed(config, kafka, service)
    const first = await feed.firstPolicy()
    const policyInForce = () => feed.policy ?? first
    const templates = createAlertTemplates({ dir: config.templatesDir, policyInForce, clock: systemClock })
    const findProblems = createProblemFinder({ policyInForce, environment: process.env, templates, log })
    feed.onChange(({ isReplaced }) => isReplaced && findProblems())
    findProblems()
    checkReady('endpoints', () => warningOf(findProblems().join('; ') || undefined))
    const counters = noCounts()
    const { redis, queueRedis } = await openRedis(config, service)
    const clickhouse = await run.own('clickhouse', connectClickhouse(config, 'weir-alerting'), (one) => one.close())
    // Alerts are sent without it: only the look-up of earlier alerts and the rows wait.
    checkReady('clickhouse', () => clickhouseWarning(clickhouse))
    const sender = await run.own('alert topic', createRecordSender(kafka), (one) => one.close())
    checkReady('alert topic', () => sender.denied)
    const publish = createPublisher(sender, counters)
    const shared = { counters, tracing, clock: systemClock, crash, stopping: run.stopping, log }
    const ways = await openWays(config, service)
    const around = { queueRedis, clickhouse, sender, publish, policyInForce, environment: process.env, templates }
    const queueing = openDeliveries({ ...shared, ...around, ...ways })
    const deliveries = await run.own('deliveries', queueing, (one) => one.close())
    const queue = startPolling('queue of deliveries', { ...queueLook, ask: deliveries.queueState }, service)
    registerMetrics(metrics, counters, { ...deliveries, queue })

    const watcher = createWatcher(policyInForce, counters)
    feed.onChange(() => watcher.policyChanged())
    const claims = createClaimStore(redis)
    const raiser = new AlertRaiser({ ...shared, claims, history: createAlertHistory(clickhouse, log), publish })
    const raise: AlertRaiser['raise'] = (candidates) => raiser.raise(candidates)
    const watching = startRateWatch({ ...shared, clickhouse, policyInForce, redis, raise })
    const rates = await run.own('watches', watching, (one) => one.stopped)
    const further = startFurtherBlocks({ ...shared, claims, raise })
    await run.own('further blocks', further, (one) => one.stopped)
    const resolvedWatch = startResolvedWatch({ ...shared, clickhouse, policyInForce, redis, raise })
    const resolved = await run.own('resolved alerts', resolvedWatch, (one) => one.stopped)
    feed.onChange(({ resets }) => resolved.reset(resets))
    for (const [name, { problem }] of Object.entries({ watches: rates, 'resolved alerts': resolved })) {
      checkReady(name, () => warningOf(problem()))
    }
    const { onDecisions, onAlerts, onRequests, onLog } = createBatchHandlers({
      ...shared,
      watch: watcher.watch,
      raise,
      deliveries,
      keepRecords: createRecordLog({
        client: clickhouse,
        deadLetters: createDeadLetterSink(sender, topics.alertsDeadLetters),
        silenceOf: (alert) => findSilence(alert, policyInForce()),
        log,
      }),
    })
    const consumers: readonly Consumer[] = [
      { groupId: 'weir-alerting', topics: [topics.decisions], ...soon, minBytes: 1_000_000, onBatch: onDecisions },
      { groupId: 'weir-dispatcher', topics: [topics.alerts], ...soon, minBytes: 1, onBatch: onAlerts },
      // A group of its own: a request waits while ClickHouse is unavailable, and no alert waits behind it.
      { groupId: 'weir-redelivery', topics: [topics.deliveries], ...soon, minBytes: 1, onBatch: onRequests },
      { groupId: 'weir-alert-log', topics: [topics.alerts, topics.deliveries], ...gathered, onBatch: onLog },
    ]
    await startConsumers(consumers, { ...kafka, sessionTimeoutMs: config.sessionMs, onCrash: run.fail }, service)
    await releaseStartMemory()
  },
)
