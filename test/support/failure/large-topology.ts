import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isGiven, kafkaFrom } from '@weir/cli/find-servers.ts'
import type { ProcessDefinition } from '@weir/cli/up/managed-process.ts'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Redis } from 'ioredis'
import { becomeNode, kafkaWith, newKafkaId } from '../servers/changed-kafka.ts'
import { takeFormatted } from '../servers/formatted-kafka.ts'
import { holderIn, joinNodes, nodeLines } from '../servers/redis-cluster.ts'
import { redisPath } from '../servers/redis-process.ts'
import { accepts } from '../start-process.ts'
import type { Stack } from './stack.ts'

/** As many as there are zones. */
const brokersCount = 3
/** Three masters and their replicas. */
const nodesCount = 6
/** Three virtual machines begin at once. */
const startDeadlineMs = 120_000

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

interface Planned {
  readonly processes: readonly ProcessDefinition[]
  /** For all that is to use them. */
  readonly variables: Readonly<Record<string, string>>
  /** Makes one of them, once all run. */
  readonly join: () => Promise<void>
}

/** What docs/high-availability.md says that a cluster of three must have, and what a test cannot wait for. */
function brokerSettings(zone: number, voters: string) {
  return {
    'node.id': zone,
    'controller.quorum.voters': voters,
    'broker.rack': `zone-${zone}`,
    'default.replication.factor': 3,
    'min.insync.replicas': 2,
    'unclean.leader.election.enable': 'false',
    'offsets.topic.replication.factor': 3,
    'transaction.state.log.replication.factor': 3,
    'transaction.state.log.min.isr': 2,
    'share.coordinator.state.topic.replication.factor': 3,
    'share.coordinator.state.topic.min.isr': 2,
    'controller.quorum.election.timeout.ms': 1_000, // here are other candidates
    'broker.session.timeout.ms': 6_000, // 9 s by default; less fences a broker that waits for a busy core
  }
}

/** Three nodes, each broker and controller, each in a zone of its own. */
async function planBrokers(dir: string, progress: (line: string) => void): Promise<Planned> {
  const zones = numbersTo(brokersCount)
  const ports = await freePorts(2 * brokersCount)
  const controllerPort = (zone: number) => ports[brokersCount + zone - 1] ?? 0
  const voters = zones.map((zone) => `${zone}@127.0.0.1:${controllerPort(zone)}`).join()
  const clusterId = newKafkaId()
  const processes: (ProcessDefinition & { readonly address: string })[] = []
  for (const zone of zones) {
    const own = join(dir, `kafka-${zone}`)
    await takeFormatted(own)
    const server = kafkaWith(brokerSettings(zone, voters), ({ cwd }) => becomeNode(cwd, zone, clusterId))
    const plan = await server.plan({
      dir: own,
      ports: [ports[zone - 1] ?? 0, controllerPort(zone)],
      progress,
      environment: process.env,
    })
    processes.push({ name: `kafka-${zone}`, startDeadlineMs, ...plan })
  }
  const brokers = processes.map(({ address }) => address)
  const kafka = kafkaFrom({ WEIR_KAFKA_BROKERS: brokers.join() }, 'failure-suite')
  return {
    processes,
    variables: { WEIR_KAFKA_BROKERS: brokers.join() },
    // A topic gets no more copies than brokers are known.
    join: () => untilKafka(kafka, async (admin) => (await admin.describeCluster()).brokers.length === brokersCount),
  }
}

/** Three masters and their replicas, durable as docs/redis.md says. */
async function planNodes(dir: string): Promise<Planned> {
  const ports = await freePorts(2 * nodesCount)
  const own = ports.slice(0, nodesCount)
  const processes = own.map(async (port, index): Promise<ProcessDefinition> => {
    const cwd = join(dir, `redis-${index + 1}`)
    await mkdir(cwd)
    const lines = [
      ...nodeLines({ port, busPort: ports[nodesCount + index] ?? 0, timeoutMs: 2_000 }),
      `dir ${cwd}`,
      'save ""',
      'appendonly yes',
      'appendfsync everysec',
      'maxmemory-policy noeviction',
      'cluster-require-full-coverage no',
    ]
    await writeFile(join(cwd, 'redis.conf'), `${lines.join('\n')}\n`)
    const command = [await redisPath(), 'redis.conf'] as const
    return { name: `redis-${index + 1}`, startDeadlineMs, command, cwd, env: {}, ready: () => accepts(port) }
  })
  return {
    processes: await Promise.all(processes),
    variables: { WEIR_REDIS_URL: `redis+cluster://${own.map((port) => `127.0.0.1:${port}`).join()}` },
    join: () => joinNodes(own),
  }
}

/** Plans those of the servers that the environment does not name. */
export async function planLarge(options: {
  readonly environment: Environment
  readonly dir: string
  readonly progress: (line: string) => void
}): Promise<Planned> {
  const { environment, dir, progress } = options
  const planned = [
    ...(isGiven(environment, 'WEIR_KAFKA_BROKERS') ? [] : [await planBrokers(dir, progress)]),
    ...(isGiven(environment, 'WEIR_REDIS_URL') ? [] : [await planNodes(dir)]),
  ]
  return {
    processes: planned.flatMap(({ processes }) => processes),
    variables: Object.assign({}, ...planned.map(({ variables }) => variables)),
    join: async () => void (await Promise.all(planned.map(({ join }) => join()))),
  }
}

type Admin = ReturnType<ReturnType<typeof createClient>['admin']>

/** Waits until Kafka is so; while it does not answer it is not. */
async function untilKafka(kafka: KafkaOptions, isSo: (admin: Admin) => Promise<boolean>): Promise<void> {
  const admin = createClient(kafka).admin()
  const isIt = async () => {
    await admin.connect()
    return isSo(admin)
  }
  const so = await waitUntil(() => isIt().catch(() => false), { deadlineMs: startDeadlineMs, everyMs: 500 })
  await admin.disconnect()
  if (so !== true) throw new Error(`Kafka at ${kafka.brokers.join()} is not whole`)
}

/** Waits until every copy of every partition is up to date: only then another broker may stop. */
export const untilInSync = ({ kafka }: Stack): Promise<void> =>
  untilKafka(kafka, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata()
    const partitions = topics.flatMap((topic) => topic.partitions)
    return partitions.every(({ isr, replicas }) => replicas.length === brokersCount && isr.length === brokersCount)
  })

const nodePorts = ({ addresses }: Stack) =>
  [...addresses.redis.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))

/** Undefined from one that is down. */
async function askNode<T>(port: number, ask: (redis: Redis) => Promise<T>): Promise<T | undefined> {
  const redis = new Redis({ port, host: '127.0.0.1', protocol: 2, retryStrategy: () => null, commandTimeout: 1_000 })
  redis.on('error', () => undefined)
  try {
    return await ask(redis)
  } catch {
    return undefined
  } finally {
    redis.disconnect()
  }
}

/** The part that holds the slot, as the nodes that live have it; undefined while they do not agree. */
export async function masterOf(stack: Stack, slot: number): Promise<string | undefined> {
  const ports = nodePorts(stack)
  const answers = await Promise.all(ports.map((port) => askNode(port, (redis) => redis.cluster('NODES'))))
  const holders = new Set(
    answers.flatMap((text) => (text === undefined ? [] : (holderIn(String(text), slot)?.port ?? 0))),
  )
  const [port = 0] = holders
  return holders.size === 1 && port !== 0 ? `redis-${ports.indexOf(port) + 1}` : undefined
}

/** Waits until another node holds the slot than the one that is held down. */
export async function untilReplaced(stack: Stack, slot: number, held: string): Promise<void> {
  const isReplaced = async () => ![held, undefined].includes(await masterOf(stack, slot))
  if ((await waitUntil(isReplaced, { deadlineMs: 30_000 })) !== true) throw new Error(`no replica took over ${held}`)
}

/** Waits until there are three masters, and each has a replica that has all it has. */
export async function untilReplicated(stack: Stack): Promise<void> {
  const isReplicated = async () => {
    const ports = nodePorts(stack)
    const infos = await Promise.all(ports.map((port) => askNode(port, (redis) => redis.info('replication'))))
    const having = (text: RegExp) => infos.filter((info) => text.test(info ?? '')).length
    return having(/role:master.*connected_slaves:1/s) === 3 && having(/role:slave.*master_link_status:up/s) === 3
  }
  const replicated = await waitUntil(isReplicated, { deadlineMs: 60_000, everyMs: 200 })
  if (replicated !== true) throw new Error('a Redis has no replica that is up to date')
}
