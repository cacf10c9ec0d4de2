import { setTimeout as pause } from 'node:timers/promises'
import { parseAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { systemClock } from '@weir/core/clock.ts'
import { consumeBatches, type RecordBatch } from '@weir/kafka/consume-batches.ts'
import { ownPolicyFeed } from '@weir/kafka/policy/service-policy.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { connectRedis, readCertificates } from '@weir/redis/connect.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { startService } from '@weir/runtime/start-service.ts'
import { createAlertTopic } from './alert-topic.ts'
import { createClaimStore } from './claim-store.ts'
import { alertingVariables } from './config.ts'
import { createDispatcher } from './dispatch.ts'
import { createEndpointSecrets } from './endpoint-secrets.ts'
import { noCounts, registerMetrics } from './metrics.ts'
import { patiently } from './patiently.ts'
import { createAlertRaiser } from './raise-alerts.ts'
import { createWatcher } from './watch-decisions.ts'
import { createWebhookSender } from './webhooks/deliver-webhook.ts'

/** Both consumers: an alert is out within half a second. */
const consuming = { maxWaitMs: 250, maxBytes: 10_000_000, partitionsAtOnce: 3 }

const disconnect = (one: { disconnect(): void }) => one.disconnect()

await startService(
  'alerting',
  () => readConfig(alertingVariables, process.env),
  async (config, service) => {
    const { run, log, metrics, crash, checkReady } = service
    const feed = await ownPolicyFeed(config, 'weir-alerting', service)
    const first = await feed.firstPolicy()
    const policyInForce = () => feed.policy ?? first
    const endpoints = createEndpointSecrets(policyInForce(), process.env, log)
    feed.onChange(({ policy, isReplaced }) => isReplaced && endpoints.follow(policy))
    checkReady('endpoints', () =>
      endpoints.problems.length > 0 ? { warning: endpoints.problems.join('; ') } : undefined,
    )
    const kafka = { brokers: config.kafkaBrokers, clientId: 'weir-alerting', log }
    const counters = noCounts()
    registerMetrics(metrics, counters)

    const onError = (error: Error) => log.warn({ err: error }, 'redis')
    const watched = { ca: readCertificates(config.redisTlsCa), onError }
    const redis = await run.own('redis', connectRedis(config.redisUrl, { role: 'claims', ...watched }), disconnect)
    checkReady('redis', () => (redis.status === 'ready' ? undefined : `Redis is ${redis.status}`))
    const queueUrl = config.queueRedisUrl || config.redisUrl
    const queueRedis = await run.own('queue redis', connectRedis(queueUrl, { role: 'queue', ...watched }), disconnect)
    const sender = await run.own('alert topic', createRecordSender(kafka), (one) => one.close())
    const webhooks = await run.own('webhooks', createWebhookSender(), (one) => one.close())
    const dispatcher = await run.own(
      'dispatcher',
      createDispatcher({ endpoints, sender: webhooks, connection: queueRedis, counters, log }),
      (one) => one.close(),
    )

    const watch = createWatcher(policyInForce, counters)
    const claims = createClaimStore(redis)
    const raise = createAlertRaiser({ claims, topic: createAlertTopic(sender), clock: systemClock, counters, crash })
    const commitAll = ({ records, commit }: RecordBatch) => commit(String(BigInt(records.at(-1)?.offset ?? 0) + 1n))

    const wait = (ms: number) => pause(ms, undefined, { signal: run.stopping })
    const watchBatch = async (batch: RecordBatch) => {
      const crossings = watch(batch.records)
      await patiently(() => raise(crossings), { heartbeat: batch.heartbeat, pause: wait, log })
      await commitAll(batch)
      crash('commit')
    }
    const dispatchBatch = async (batch: RecordBatch) => {
      for (const record of batch.records) {
        const alert = parseAlert(record.value, record.headers)
        if (alert.kind === 'alert') await dispatcher.enqueue(alert.alert)
        else log.error({ offset: record.offset, partition: batch.partition, why: alert.reason }, 'alert unreadable')
      }
      // 1. All jobs are in Redis. A crash before the commit enqueues them again, under the same ids.
      crash('enqueue')
      await commitAll(batch)
      crash('enqueue_commit')
    }
    for (const { groupId, topic, minBytes, onBatch } of [
      { groupId: 'weir-alerting', topic: topics.decisions, minBytes: 1_000_000, onBatch: watchBatch },
      { groupId: 'weir-dispatcher', topic: topics.alerts, minBytes: 1, onBatch: dispatchBatch },
    ]) {
      const sessionTimeoutMs = config.sessionMs
      const options = {
        ...kafka,
        ...consuming,
        sessionTimeoutMs,
        groupId,
        topics: [topic],
        minBytes,
        onBatch,
        onCrash: run.fail,
      }
      const consumer = await run.own(groupId, consumeBatches(options), (one) => one.stop())
      checkReady(groupId, () => (consumer.status.state === 'running' ? undefined : consumer.status.waitingFor))
    }
  },
)
