import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { kafkaFrom } from '@weir/cli/find-servers.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import type { NativeServer } from '@weir/runtime/native-server.ts'
import { type Certificate, createAuthority } from '../support/servers/certificates.ts'
import { startSecureKafka } from '../support/servers/secure-kafka.ts'
import { startServer } from '../support/servers/start-server.ts'
import { type Asking, askCheck, askProxy, policyText } from './ingress/caller.ts'
import { type Contestant, startPlain, startWeir } from './ingress/contestants.ts'
import { type Measured, measure, type Pids } from './ingress/measure.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'

/** As in `ingress.bench.ts`. */
const warmUpSeconds = 5
const secondsPerRound = 3

/** Contestants of one door; the first is what the others are compared with. */
const ways = ['plain', 'TLS to Redis', 'TLS to Kafka', 'TLS to both', 'TLS to both and from clients'] as const
const doors: Readonly<Record<string, Asking>> = { check: askCheck, proxy: askProxy }

const figures: Readonly<Record<string, (one: Measured) => number>> = {
  'ingress, µs': (one) => one.serverCpuUs,
  'main thread of it': (one) => one.mainThreadCpuUs,
  'publisher of it': (one) => one.publisherCpuUs,
  'redis, µs': (one) => one.redisCpuUs,
  'kafka, µs': (one) => one.kafkaCpuUs,
  'requests/s': (one) => one.requestsPerSecond,
}

interface Entry {
  readonly contestant: Contestant
  readonly pids: Pids
  readonly base: number
  readonly rounds: Measured[]
}

/**
 * The local Redis, which speaks TLS at a second port: what both cost is counted in one process, with one configuration.
 */
const redisWithTls = ({ certFile, keyFile }: Certificate, caFile: string): NativeServer => ({
  ...redisServer,
  portCount: 2,
  async plan({ ports: [port = 0, tlsPort = 0], ...options }) {
    const plan = await redisServer.plan({ ...options, ports: [port] })
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', caFile]
    const more = ['--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no'] as const
    return { ...plan, command: [...plan.command, ...more], address: `${plan.address} ${tlsPort}` }
  },
})

function tablesOf(entries: readonly Entry[]): BenchTable[] {
  const table = (title: string, value: (entry: Entry, figure: (one: Measured) => number) => number[]): BenchTable => ({
    title,
    columns: Object.keys(figures),
    rows: entries.map((entry) => ({
      label: entry.contestant.label,
      values: Object.values(figures).map((figure) => spread(value(entry, figure))),
    })),
  })
  return [
    table('CPU a request', ({ rounds }, figure) => rounds.map(figure)),
    table('× plain, same round', ({ rounds, base }, figure) =>
      rounds.map((one, at) => figure(one) / figure(entries[base]?.rounds[at] ?? one)),
    ),
  ]
}

type Own = <T extends { close(): Promise<void> }>(one: T) => T
type Environment = Readonly<Record<string, string>>

/** The servers, and how each way reaches them. */
async function startServers(own: Own, dir: string) {
  const authority = await createAuthority(dir)
  const certificate = await authority.issue('server')
  const redis = own(await startServer(redisWithTls(certificate, authority.caFile)))
  const [redisUrl = '', tlsPort = ''] = redis.address.split(' ')
  const kafka = own(await startServer(kafkaServer))
  const [user, password] = ['weir', 'bench-password']
  const secure = own(await startSecureKafka({ settings: { 'super.users': `User:admin;User:controller;User:${user}` } }))
  await secure.setPassword(user, password)
  const upstream = own(await startPlain({ label: 'upstream', file: 'upstream', asking: askProxy }))
  const plain = { WEIR_KAFKA_BROKERS: kafka.address }
  const toRedis = {
    WEIR_REDIS_URL: redisUrl.replace('redis:', 'rediss:').replace(/:\d+$/, `:${tlsPort}`),
    WEIR_REDIS_TLS_CA: authority.caFile,
  }
  const toKafka = {
    WEIR_KAFKA_BROKERS: secure.address,
    WEIR_KAFKA_TLS_CA: secure.caFile,
    WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
    WEIR_KAFKA_SASL_USERNAME: user,
    WEIR_KAFKA_SASL_PASSWORD: password,
  }
  for (const environment of [plain, toKafka]) await ensureTopics(kafkaFrom(environment, 'bench'), await readTopics())
  const toBoth = { ...toRedis, ...toKafka }
  const fromClients = { WEIR_TLS_CERT: certificate.certFile, WEIR_TLS_KEY: certificate.keyFile }
  const environments: Readonly<Record<(typeof ways)[number], Environment>> = {
    plain,
    'TLS to Redis': { ...plain, ...toRedis },
    'TLS to Kafka': toKafka,
    'TLS to both': toBoth,
    'TLS to both and from clients': { ...toBoth, ...fromClients },
  }
  const pidsOf = (environment: Environment): Pids => ({
    redis: redis.pid(),
    kafka: (environment.WEIR_KAFKA_BROKERS === kafka.address ? kafka : secure).pid(),
  })
  return { shared: { redis: redisUrl, kafka: kafka.address, upstream: upstream.origin }, environments, pidsOf }
}

async function startEntries(own: Own, dir: string): Promise<readonly Entry[]> {
  const { shared, environments, pidsOf } = await startServers(own, dir)
  const policy = policyText(2, shared.upstream)
  const entries: Entry[] = []
  for (const [door, asking] of Object.entries(doors)) {
    const base = entries.length
    for (const way of ways) {
      const environment = environments[way]
      const weir = { label: `${door}, ${way}`, asking, recorded: true, policy, environment }
      const contestant = own(await startWeir(weir, shared, dir))
      entries.push({ contestant, pids: pidsOf(environment), base, rounds: [] })
    }
  }
  return entries
}

/**
 * What encryption costs: doors of the ingress with TLS to Redis, to Kafka, to both and from clients, beside the same
 * without.
 */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-tls-'))
  const own: Own = (one) => {
    opened.push(one)
    return one
  }
  try {
    // The local Kafka compiles for a quick start; what encrypts in a broker of production is compiled for speed.
    process.env._JAVA_OPTIONS = '-XX:TieredStopAtLevel=4'
    progress('starting Redis, two Kafkas, an upstream and the contestants')
    const entries = await startEntries(own, dir)
    for (const { contestant, pids } of entries) {
      progress(`warming up ${contestant.label}`)
      await measure(contestant, pids, warmUpSeconds)
    }
    const countUnavailable = async () =>
      (await Promise.all(entries.map(({ contestant }) => contestant.countUnavailable()))).reduce((a, b) => a + b, 0)
    const before = await countUnavailable()
    const loads: number[] = []
    for (let round = 1; round <= rounds; round += 1) {
      // Who follows whom changes from round to round.
      const from = round % entries.length
      for (const { contestant, pids, rounds: measured } of [...entries.slice(from), ...entries.slice(0, from)]) {
        measured.push(await measure(contestant, pids, secondsPerRound))
      }
      loads.push(loadavg()[0] ?? Number.NaN)
      progress(`round ${round} of ${rounds}, load ${loads.at(-1)?.toFixed(1)}`)
    }
    return {
      name: `tls: what encryption costs, ${secondsPerRound} s each in turn; that of Kafka is SASL_SSL with SCRAM and an authorizer`,
      tables: tablesOf(entries),
      rows: [
        { label: 'load of the machine, with the bench', unit: 'processes', ...spread(loads) },
        { label: 'decisions made without Redis', unit: 'in all', ...spread([(await countUnavailable()) - before]) },
      ],
      ratios: [],
    }
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
