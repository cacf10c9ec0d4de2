import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { documentedRights } from '../documented-rights.ts'
import { listen } from '../listen.ts'
import { startSecureKafka } from '../servers/secure-kafka.ts'
import { startServer } from '../servers/start-server.ts'
import { startTables } from '../servers/tables.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'

export const serviceNames = ['ingress', 'metering', 'alerting', 'console'] as const
export type ServiceName = (typeof serviceNames)[number]

/**
 * A Kafka that grants what docs/configuration.md says and nothing more, with all services on it, each as its own user.
 */
export type SecuredWeir = Awaited<ReturnType<typeof startSecuredWeir>>

const adminToken = 'test-admin-token'
const passwordOf = (user: string) => `password of ${user}`

/** Every request of a new subject reaches a threshold. */
const policyOf = (port: number) => ({
  version: 1,
  identity: { trustedHeaders: { from: ['127.0.0.1/32'], subject: 'x-user', plan: 'free' } },
  plans: { free: { limits: ['day'] } },
  limits: { day: { algorithm: 'fixed_window', size: 2, period: 'day', thresholds: ['50%'] } },
  endpoints: { ops: { url: `http://127.0.0.1:${port}/hook`, secretEnv: 'OPS_SECRET', allowPrivate: true } },
  upstreams: { here: { url: `http://127.0.0.1:${port}`, hosts: ['127.0.0.1'] } },
  routes: [{ match: 'GET /', upstream: 'here' }],
})

/** The endpoint of all alerts, and the upstream. */
async function startReceiver() {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(204).end()
  })
  return { server, port: await listen(server) }
}

async function until(service: ServiceProcess, isSo: () => Promise<boolean>): Promise<ServiceProcess> {
  const isStarted = await waitUntil(isSo, { deadlineMs: 60_000 })
  if (isStarted !== true) throw new Error(`not started:\n${service.said()}`)
  return service
}

/** The console first, for the others need the policy that `isStored` waits for. */
async function startServices(
  environmentOf: (user: string) => Readonly<Record<string, string>>,
  isStored: () => Promise<boolean>,
) {
  const start = (name: ServiceName) => startServiceProcess(name, environmentOf(`weir-${name}`))
  const startReady = async (name: ServiceName) => {
    const service = await start(name)
    return until(service, async () => (await service.ready()).status === 200)
  }
  const operator = await until(await start('console'), isStored)
  const others = [startReady('ingress'), startReady('metering'), startReady('alerting')] as const
  const [ingress, metering, alerting] = await Promise.all(others)
  return { ingress, metering, alerting, console: operator }
}

/** Starts all of it; `createTopics` is called as soon as there is a Kafka with its users. */
export async function startSecuredWeir(createTopics: (environment: Readonly<Record<string, string>>) => Promise<void>) {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-rights-'))
  const starting = [startSecureKafka(), startServer(redisServer), startTables(), startReceiver()] as const
  const [kafka, redis, tables, receiver] = await Promise.all(starting)
  const [proxyPort, apiPort, grpcPort, consolePort] = await freePorts(4)
  const consoleUrl = `http://127.0.0.1:${consolePort}`
  const rights = documentedRights()
  for (const [user, own] of rights) {
    await kafka.setPassword(user, passwordOf(user))
    await kafka.grant(user, own)
  }
  /** What a process or a command needs to be this user. */
  const environmentOf = (user: string) => ({
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_KAFKA_TLS_CA: kafka.caFile,
    WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
    WEIR_KAFKA_SASL_USERNAME: user,
    WEIR_KAFKA_SASL_PASSWORD: passwordOf(user),
    WEIR_CLICKHOUSE_URL: tables.url,
    WEIR_REDIS_URL: redis.address,
    WEIR_CONSOLE_URL: consoleUrl,
    WEIR_ADMIN_TOKEN: adminToken,
    WEIR_ADMIN_TOKEN_SHA256: createHash('sha256').update(adminToken).digest('hex'),
    WEIR_POLICY_FILE: '/nowhere/weir.yaml',
    WEIR_INGRESS_PORT: String(proxyPort),
    WEIR_API_PORT: String(apiPort),
    WEIR_GRPC_PORT: String(grpcPort),
    WEIR_CONSOLE_PORT: String(consolePort),
    WEIR_DECISION_DEADLINE_MS: '2000', // the machine is shared with everything else that is tested
    WEIR_JOURNAL_DIR: join(dir, 'journal'),
    WEIR_JOURNAL_EPHEMERAL: '1',
    OPS_SECRET: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
  })
  /** Asks the console as administrator. */
  const ask = async (method: string, path: string, body: unknown = {}) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(30_000)
    const response = await fetch(`${consoleUrl}${path}`, { method, headers, body: JSON.stringify(body), signal })
    return { status: response.status, text: await response.text() }
  }
  await createTopics(environmentOf('weir-topics'))
  const services = await startServices(environmentOf, async () => {
    const answer = await ask('PUT', '/v1/policy', policyOf(receiver.port)).catch(() => undefined)
    return answer?.status === 200
  })
  return {
    kafka,
    tables,
    rights,
    services,
    environmentOf,
    ask,
    /** One request of a subject through the proxy; gives its status. */
    async request(subject: string) {
      const response = await fetch(`http://127.0.0.1:${proxyPort}/`, { headers: { 'x-user': subject } })
      await response.body?.cancel()
      return response.status
    },
    /** Listens to the console's stream of decisions; returns what ends that. */
    async listen() {
      const stop = new AbortController()
      const headers = { authorization: `Bearer ${adminToken}` }
      await fetch(`${consoleUrl}/v1/decisions/stream?of=sums`, { headers, signal: stop.signal })
      return () => stop.abort()
    },
    async close() {
      await Promise.all(Object.values(services).map((one) => one.kill('SIGKILL')))
      receiver.server.closeAllConnections()
      receiver.server.close()
      await Promise.all([kafka.close(), redis.close(), tables.close()])
      await rm(dir, { recursive: true, force: true })
    },
  }
}
