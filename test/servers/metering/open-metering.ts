import { randomUUID } from 'node:crypto'
import { projectRoot } from '@weir/cli/project.ts'
import { quoted } from '@weir/clickhouse/audit/rollups.ts'
import { type ClickHouseClient, connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { createClient, type KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { clusterOf } from '@weir/kafka/wire/raw-cluster.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { clusterName, clusterServer, isOnCluster } from '../../support/servers/cluster-server.ts'
import { prepareCluster } from '../../support/servers/cluster-tables.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startOwnClickhouse } from '../../support/servers/own-clickhouse.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { type ServiceProcess, startServiceProcess } from '../../support/service-process.ts'

/** Kafka, ClickHouse and whatever metering processes a test starts; the rest of Weir is this file. */
export type MeteringStack = Awaited<ReturnType<typeof openMeteringStack>>

/** What kafkajs's connection to a group's coordinator has beyond its types. */
interface Coordinator {
  leaveGroup(member: { readonly groupId: string; readonly memberId: string }): Promise<unknown>
}

/**
 * Takes the members of metering's groups out of them, as Kafka does when the sessions of killed processes have ended,
 * which takes 6 s.
 */
export async function endSessions(options: KafkaOptions): Promise<void> {
  const client = createClient(options)
  const [admin, cluster] = [client.admin(), clusterOf(client)]
  await Promise.all([admin.connect(), cluster.connect()])
  const { groups } = await admin.describeGroups(['weir-metering', 'weir-metering-outcomes'])
  for (const { groupId, members } of groups) {
    const coordinator = (await cluster.findGroupCoordinator({ groupId })) as unknown as Coordinator
    // A member whose session has ended by itself is unknown.
    for (const { memberId } of members) await coordinator.leaveGroup({ groupId, memberId }).catch(() => undefined)
  }
  await Promise.all([admin.disconnect(), cluster.disconnect()])
}

/** The tables of one server, or of a cluster's only one: `client` has the rows, `asked` is what people ask. */
async function openTables(address: string): Promise<{ client: ClickHouseClient; asked: ClickHouseClient }> {
  if (isOnCluster) {
    const { local, all } = await prepareCluster(address)
    return { client: local, asked: all }
  }
  const client = connectClickhouse(address, 'test')
  await migrate(client, await readMigrations(`${projectRoot}/infra/clickhouse/migrations`))
  return { client, asked: client }
}

/** `startKafka` is awaited before the topics are created. */
export async function openMeteringStack(
  startKafka = () => startServer(kafkaServer),
  startClickhouse = () => (isOnCluster ? startServer(clusterServer()) : startOwnClickhouse()),
) {
  const [kafka, clickhouse] = await Promise.all([startKafka(), startClickhouse()])
  const { client, asked } = await openTables(clickhouse.address)
  const options = kafkaOptions(kafka.address)
  await ensureTopics(options, await readTopics())
  const kafkaClient = createClient(options, { retries: 20 })
  const producer = kafkaClient.producer({ allowAutoTopicCreation: false })
  const admin = kafkaClient.admin()
  await Promise.all([producer.connect(), admin.connect()])
  const started: ServiceProcess[] = []
  return {
    kafka,
    clickhouse,
    client,
    options,
    admin,
    async start(environment: Readonly<Record<string, string>> = {}) {
      const servers = {
        WEIR_KAFKA_BROKERS: kafka.address,
        WEIR_CLICKHOUSE_URL: clickhouse.address,
        ...(isOnCluster ? { WEIR_CLICKHOUSE_CLUSTER: clusterName } : {}),
      }
      const one = await startServiceProcess('metering', { ...servers, ...environment })
      started.push(one)
      return one
    },
    /** Appends values to a partition as they are; null for a record without value. */
    async send(values: readonly (string | Buffer | null)[], partition: number = 0, topic: string = topics.decisions) {
      await producer.send({ topic, messages: values.map((value) => ({ key: 'k', value, partition })) })
    },
    rows: <T>(query: string) => readRows<T>(asked, query),
    async close() {
      await Promise.all(started.map((one) => one.kill('SIGKILL')))
      await Promise.all([producer.disconnect(), admin.disconnect(), client.close(), asked.close()])
      await Promise.all([kafka.close(), clickhouse.close()])
    },
  }
}

/** A process start that writes decisions of one subject, numbered per partition. */
export type TestJournal = ReturnType<typeof newJournal>

export function newJournal(name = 'subject') {
  const id = randomUUID()
  const subject = `${name}-${id.slice(0, 8)}`
  const next = new Map<number, number>()
  return {
    id,
    subject,
    /** The next so many records of a partition. */
    take(
      count: number,
      partition: number = 0,
      { tsMs = Date.now(), seq: from }: { readonly tsMs?: number; readonly seq?: number } = {},
    ) {
      const first = from ?? next.get(partition) ?? 0
      next.set(partition, Math.max(next.get(partition) ?? 0, first + count))
      return Array.from({ length: count }, (_, at) => {
        const limits = [{ name: 'minute', size: 100, used: 1, remaining: 99, resetMs: 5 }]
        const measured = { meter: 'chat', dims: { model: 'small' }, units: { tokens: 3 }, basis: 'reported' } as const
        const decision = { id: uuidv7(tsMs), tsMs, subject, route: 'GET /{id}', cost: 2, limits }
        const open = encodeDecisionOpen(decisionInput({ ...decision, ...measured }))
        return `${open},"journal":"${id}","seq":${first + at}}`
      })
    },
  }
}

export interface Sums {
  readonly raw: number
  readonly distinct: number
  readonly usage_1m: number
  readonly usage_15m: number
  readonly limits_15m: number
  readonly tokens: number
  readonly cost: number
}

/** What each table has of a subject. */
async function sumsOf(stack: MeteringStack, name: string): Promise<Sums> {
  const subject = quoted(name)
  const [row] = await stack.rows<Sums>(
    `SELECT toUInt32(sum(count)) AS raw, toUInt32(uniqExact(id)) AS distinct,
       (SELECT toUInt32(sum(count)) FROM weir.usage_1m WHERE subject = ${subject}) AS usage_1m,
       (SELECT toUInt32(sum(count)) FROM weir.usage_15m WHERE subject = ${subject}) AS usage_15m,
       (SELECT toUInt32(sum(count)) FROM weir.limits_15m WHERE subject = ${subject}) AS limits_15m,
       (SELECT toUInt32(sum(quantity)) FROM weir.units_15m WHERE subject = ${subject}) AS tokens,
       (SELECT toUInt32(sum(cost)) FROM weir.usage_15m WHERE subject = ${subject}) AS cost
     FROM weir.decisions WHERE subject = ${subject}`,
  )
  if (row === undefined) throw new Error('ClickHouse gave no row')
  return row
}

/** Each table has every one of so many decisions once. */
export const once = (count: number): Sums => ({
  raw: count,
  distinct: count,
  usage_1m: count,
  usage_15m: count,
  limits_15m: count,
  tokens: 3 * count,
  cost: 2 * count,
})

/** Until the tables have so much of a subject, or the deadline; gives what they have. */
export async function settled(stack: MeteringStack, subject: string, count: number, deadlineMs = 60_000) {
  const isThere = ({ raw, usage_1m, usage_15m, limits_15m, tokens }: Sums) =>
    Math.min(raw, usage_1m, usage_15m, limits_15m, tokens / 3) >= count
  await waitUntil(async () => isThere(await sumsOf(stack, subject)), { deadlineMs, everyMs: 200 })
  return sumsOf(stack, subject)
}
