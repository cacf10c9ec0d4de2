import { openQuotaRestorer } from '@weir/audit/quota-restorer.ts'
import { clickhouseWarning, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { readRecentGaps } from '@weir/clickhouse/mark-queries.ts'
import { pageMsMax } from '@weir/clickhouse/question-bounds.ts'
import { topics } from '@weir/contracts/topics.ts'
import { systemClock } from '@weir/core/clock.ts'
import { TopicFollower } from '@weir/kafka/follow-topic.ts'
import { kafkaOptionsFrom } from '@weir/kafka/kafka-variables.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { AuditLog } from '@weir/policy-changes/audit-log.ts'
import { findChange } from '@weir/policy-changes/change-queries.ts'
import { PolicyHistory } from '@weir/policy-changes/policy-history.ts'
import { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import { createPolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { mastersOf, problemOf, serverFinder } from '@weir/redis/limit-connection.ts'
import type { RedisTlsFiles } from '@weir/redis/redis-url.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { ownSecret } from '@weir/runtime/live-secret.ts'
import { type Readiness, warningOf } from '@weir/runtime/ops-server.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { releaseStartMemory } from '@weir/runtime/release-memory.ts'
import type { Secret } from '@weir/runtime/secret.ts'
import { type Service, startService } from '@weir/runtime/start-service.ts'
import { followCertificates, listenerTls } from '@weir/runtime/tls-listener.ts'
import { createAlertAdmin } from './alerts/alert-admin.ts'
import { buildApp } from './app.ts'
import { consoleVariables } from './config.ts'
import { openDecisionSource } from './decisions/decision-source.ts'
import { LiveDecisions } from './decisions/live-decisions.ts'
import { createSemaphores } from './http/semaphore.ts'
import { openLimitSource } from './limits/limit-source.ts'
import { registerMetrics } from './metrics.ts'
import { openMoneySource } from './money/money-source.ts'
import type { Sources } from './sources.ts'
import { askProcesses } from './status/ask-processes.ts'
import { openMonitor } from './status/open-monitor.ts'
import { openUsageSource } from './usage/usage-source.ts'
import { streamMsMax } from './usage/usage-stream.ts'

/** A person waits for the answer. ClickHouse ends questions about usage before, and says by which bound. */
const questionMs = pageMsMax + 5_000

/** Without Kafka the console still answers what it has read; before the first reading there is nothing to answer. */
function policyReadiness({ state, status: { waitingFor, refused } }: PolicyFeed): Readiness {
  if (waitingFor === '') return warningOf(refused)
  return state === undefined ? waitingFor : { warning: waitingFor }
}

/**
 * Connects for resets and restoring; undefined where no address is given. Redis need not be up: callers then get 503.
 */
async function openRedis(config: RedisTlsFiles & { readonly redisUrl: Secret }, { run, log, checkReady }: Service) {
  if (config.redisUrl.text === '') return undefined
  const onError = (error: Error) => log.warn({ err: error }, 'redis')
  const redis = connectLimiter(config.redisUrl, { onError, tls: config, use: 'console' })
  const problem = () => problemOf(redis)
  checkReady('redis', async () => warningOf(await problem()))
  await run.own('redis', redis, (client) => client.disconnect())
  return { redis, problem }
}

const formerBudgets =
  'budgets do nothing since 0.11: `weir export > weir.yaml` and `weir check` print the limits that raise their alerts'

await startService(
  'console',
  () => readConfig(consoleVariables, process.env),
  async (config, service) => {
    const { run, log, checkReady } = service
    const clickhouse = await run.own('clickhouse', connectClickhouse(config, 'weir-console', questionMs), (client) =>
      client.close(),
    )
    // Policy, keys and limits are served without it: a balancer that takes the console out would end those too.
    checkReady('clickhouse', () => clickhouseWarning(clickhouse))

    const kafka = kafkaOptionsFrom(config, 'weir-console', log)
    const audit = new AuditLog()
    // No seed: what is changed here is what the topic holds, and nothing else. No snapshot: it has no audit.
    const auditSink = { onAudit: audit.add.bind(audit), onAuditRestart: audit.clear.bind(audit) }
    const feed = await run.own(
      'policy',
      new PolicyFeed({ ...kafka, snapshotPath: '', seed: () => undefined, ...auditSink }),
      (one) => one.close(),
    )
    checkReady('policy', () => policyReadiness(feed))
    void feed.firstPolicy().then(
      () => feed.state?.hasFormerBudgets && log.warn(formerBudgets),
      () => undefined, // the console stops
    )
    const history = await run.own('policy history', new PolicyHistory({ ...kafka, clickhouse }), (one) => one.close())
    checkReady('policy history', () => warningOf(history.problem))
    const writer = await run.own('policy writer', createPolicyWriter(kafka), (one) => one.close())
    const sender = await run.own('deliveries', createRecordSender(kafka), (one) => one.close())
    checkReady('writes to Kafka', () => writer.denied ?? sender.denied)
    const limiter = await openRedis(config, service)
    const servers = limiter && { serverOf: serverFinder(limiter.redis), all: () => mastersOf(limiter.redis) }
    const restorer = servers && (await openQuotaRestorer(servers, config, () => feed.policy, service))
    const monitor = await openMonitor({ clickhouse, kafka, servers }, service)
    const live = new LiveDecisions((sink) => new TopicFollower({ ...kafka, ...sink, topic: topics.decisions }))
    checkReady('live decisions', () => warningOf(live.problem))
    const semaphores = createSemaphores()
    registerMetrics(service.metrics, { semaphores, live, monitor, restores: restorer?.counters })
    const { portalKey, unsubscribeKey } = consoleVariables
    const streams = connectClickhouse(config, 'weir-console', streamMsMax)
    await run.own('streams', streams, (client) => client.close())
    const sources: Sources = {
      usage: openUsageSource(clickhouse, streams),
      decisions: openDecisionSource(clickhouse, streams, live),
      limits: servers && openLimitSource(clickhouse, servers),
      money: openMoneySource(clickhouse),
      alerts: createAlertAdmin(clickhouse, sender, systemClock),
      policy: feed,
      changes: {
        publish: (messages) => writer.publish(messages),
        audit,
        onMoved: restorer?.restoreMoved,
        findChange: findChange.bind(undefined, clickhouse, topics.policy),
      },
      status: {
        recentGaps: readRecentGaps.bind(undefined, clickhouse),
        redisProblem: async () => limiter?.problem(),
        processes: () => askProcesses(config.statusUrls),
      },
      access: {
        portalKey: await ownSecret(config.portalKey, portalKey, service),
        unsubscribeKey: await ownSecret(config.unsubscribeKey, unsubscribeKey, service),
        publicUrl: config.publicUrl,
        portalOrigins: config.portalOrigins,
        ingressUrl: config.ingressUrl,
        vendor: { name: config.portalName, color: config.portalColor },
      },
      semaphores,
      clock: systemClock,
    }
    const adminToken = await ownSecret(config.adminTokenSha256, adminTokenVariable, service)
    const tls = listenerTls(config, 'tls')
    const app = await run.own('http', buildApp(sources, log, adminToken, tls), (server) => server.close())
    app.server.keepAliveTimeout = config.idleTimeoutMs
    await followCertificates([['console', app.server, tls]], service)
    await app.listen({ host: config.consoleHost, port: config.consolePort })
    await releaseStartMemory()
  },
)
