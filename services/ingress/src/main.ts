import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { CorrectionAckQueue } from '@weir/decide/correct/correction-ack-queue.ts'
import { createAuthenticator } from '@weir/identity/authenticate.ts'
import { identityRules } from '@weir/identity/identity-rules.ts'
import { kafkaOptionsFrom } from '@weir/kafka/kafka-variables.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { ownPolicyFeed } from '@weir/policy-feed/service-policy.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import { createLayers } from '@weir/redis/layers/all-layers.ts'
import { createProcessCount } from '@weir/redis/layers/process-count.ts'
import { createPauses } from '@weir/redis/pauses.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { ownSecret } from '@weir/runtime/live-secret.ts'
import { isLoopback } from '@weir/runtime/loopback.ts'
import { type Config, readConfig } from '@weir/runtime/read-config.ts'
import { type Service, startService } from '@weir/runtime/start-service.ts'
import { followCertificates, listenerTls } from '@weir/runtime/tls-listener.ts'
import { openTracing } from '@weir/runtime/tracing.ts'
import { type Apps, buildApps } from './app.ts'
import { ingressVariables } from './config.ts'
import { followPolicy } from './follow-policy.ts'
import { logDecisions } from './log-decisions.ts'
import { registerApps, registerMetrics } from './metrics.ts'
import { journalTopics, ownJournal } from './own-journal.ts'
import { connectPatienceMs, redisReadiness } from './redis-readiness.ts'
import { acceptProxyHeaders } from './routes/proxy/proxy-protocol.ts'
import { RequestTraces } from './trace/request-trace.ts'
import { warmUp } from './warm-up.ts'

type IngressConfig = Config<typeof ingressVariables>

await startService(
  'ingress',
  () => readConfig(ingressVariables, process.env),
  async (config, service) => {
    const { run, log, metrics, crash, checkReady } = service
    const kafka = kafkaOptionsFrom(config, 'weir-ingress', log)
    const tracing = await openTracing(config, 'ingress', service)
    const feed = await ownPolicyFeed(config, kafka, service, config)
    const onError = (error: Error) => log.warn({ err: error }, 'redis')
    const redis = await run.own(
      'redis',
      connectLimiter(config.redisUrl, { onError, tls: config, use: 'ingress' }),
      (client) => client.disconnect(),
    )
    const settlements = new RedisSettlements({ redis, owner: randomUUID(), markersMax: config.markersPerSubject })
    const ackQueue = new CorrectionAckQueue(settlements, log)
    const journal = await ownJournal(config, kafka, service, ackQueue, tracing)
    await run.own('corrections', ackQueue, (queue) => queue.close())
    const decisions = await logDecisions(journal.log(journalTopics.decisions), config, run)
    const periodBoundaries = createBoundaryCache()
    const common = { clock: systemClock, periodBoundaries, deadlineMs: config.decisionDeadlineMs }
    const own = { redis, ...common, markersMax: config.markersPerSubject }
    const store = await run.own('limits', new RedisLimitStore(own), (limits) => limits.close())
    const processes = await run.own('process count', createProcessCount({ redis }), (count) => count.stop())
    await processes.start()
    const layers = createLayers(store, { ...common, processes: processes.count })
    checkReady('redis', redisReadiness(store.checkHealth, performance.now() + connectPatienceMs))
    const callers = createAuthenticator({ clock: systemClock, log })
    const authenticator = await run.own('authenticator', callers, (one) => one.close())
    const idempotencyRecords = new RedisIdempotencyRecords({ redis, deadlineMs: config.decisionDeadlineMs })
    registerMetrics(metrics, { store, layers, processes, authenticator })

    const policy = await followPolicy(feed, config, layers)
    await warmUp(policy.view.policy, store, () => redis.status === 'ready' && store.serversDown === 0)
    const adminToken = await ownSecret(config.adminTokenSha256, adminTokenVariable, service)
    const tls = tlsOf(config)
    const apps = await buildApps(
      {
        policy,
        store: layers.store,
        slots: store,
        authenticator,
        log: decisions,
        outcomes: journal.log(journalTopics.outcomes),
        clock: systemClock,
        idempotencyRecords,
        onJournalFull: config.onJournalFull,
        addressForm: config.recordAddress,
        settlements,
        ackQueue,
        pauses: createPauses({ redis, onFault: (err) => log.error({ err }, 'Redis refused to pause a limit') }),
        crash,
        traces: tracing && new RequestTraces(tracing, config.traceSubjects === '1'),
        dialect: config.rateLimitHeaders,
        environment: process.env,
        costStatus: config.costStatus === '413' ? 413 : 403,
        upstreamBounds: { subjectShare: config.upstreamSubjectShare / 100, bodyRateMin: config.bodyRateMin },
        grpcNeedsNoToken: !needsToken(config),
      },
      log,
      adminToken,
      tls,
    )
    const inForce = () => policy.view.policy
    registerApps(metrics, apps, idempotencyRecords, inForce)
    await listen(apps, config, tls, service, inForce)
  },
)

function tlsOf(config: IngressConfig) {
  const [proxy, api] = [listenerTls(config, 'tls'), listenerTls(config, 'apiTls')]
  return { proxy, api, grpc: listenerTls(config, 'grpcTls') }
}

async function listen(
  apps: Apps,
  config: IngressConfig,
  tls: ReturnType<typeof tlsOf>,
  service: Service,
  inForce: () => Policy,
) {
  const { run } = service
  const secured = (['proxy', 'api', 'grpc'] as const).map((name) => [name, apps[name].server, tls[name]] as const)
  await followCertificates(secured, service)
  const isTrusted = (address: string) => identityRules(inForce().identity).proxies?.has(address) === true
  if (config.proxyProtocol === 'yes') acceptProxyHeaders(apps.proxy.server, isTrusted)
  for (const { server } of [apps.proxy, apps.api]) server.keepAliveTimeout = config.idleTimeoutMs
  const reusePort = config.sharePorts === 'yes'
  await run.own('http', apps, (listeners) => listeners.close())
  await apps.proxy.listen({ host: config.ingressHost, port: config.ingressPort, reusePort } as object)
  await apps.api.listen({ host: config.apiHost, port: config.apiPort, reusePort } as object)
  await run.own('grpc', apps.grpc, (listener) => listener.close())
  await apps.grpc.listen({ host: config.grpcHost, port: config.grpcPort, reusePort })
}

/**
 * A gateway on the same machine needs no token, as it needs none for other limiters; one elsewhere does unless
 * configured not to.
 */
function needsToken({ grpcAuth, grpcHost }: IngressConfig) {
  return grpcAuth === 'auto' ? !isLoopback(grpcHost) : grpcAuth === 'token'
}
