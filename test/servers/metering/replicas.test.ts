import { randomUUID } from 'node:crypto'
import { quoted } from '@weir/clickhouse/audit/rollups.ts'
import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { clusterName, clusterServer } from '../../support/servers/cluster-server.ts'
import { prepareCluster } from '../../support/servers/cluster-tables.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { type ServiceProcess, startServiceProcess } from '../../support/service-process.ts'
import { until } from '../../support/until.ts'
import { holdFirstInsert } from './held-insert.ts'
import { newJournal } from './open-metering.ts'

/** A shard of one replica, which takes each token once. */
interface ShardServer {
  readonly server: RunningServer
  readonly local: ClickHouseClient
  readonly all: ClickHouseClient
}

const startShard = async (name: string): Promise<ShardServer> => {
  const server = await startServer(clusterServer(name))
  return { server, ...(await prepareCluster(server.address)) }
}

const kafka = await forFile(startServer(kafkaServer))
const shards = await Promise.all(['s1', 's2', 's3'].map(startShard))
const options = kafkaOptions(kafka.address)
await ensureTopics(options, await readTopics())
const producer = createClient(options, { retries: 20 }).producer({ allowAutoTopicCreation: false })
await producer.connect()
afterAll(async () => {
  await producer.disconnect()
  for (const { local, all, server } of shards ?? []) await Promise.all([local.close(), all.close(), server.close()])
})

const addressOf = (at: number) => shards[at]?.server.address ?? ''

/** Addresses as WEIR_CLICKHOUSE_URL lists them, replicas of a shard together. */
function listOf(...groups: readonly (readonly string[])[]) {
  const { username, password } = new URL(addressOf(0))
  const hosts = groups.map((group) => group.map((address) => new URL(address).host).join(','))
  return `http://${username}:${password}@${hosts.join(';')}`
}

async function start(url: string, more: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  const one = await startServiceProcess('metering', {
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_CLICKHOUSE_URL: url,
    WEIR_CLICKHOUSE_CLUSTER: clusterName,
    ...more,
  })
  onTestFinished(() => one.kill('SIGKILL'))
  return one
}

async function send(values: readonly string[], partition: number): Promise<void> {
  await producer.send({ topic: topics.decisions, messages: values.map((value) => ({ key: 'k', value, partition })) })
}

/** What all shards together have of a subject in the raw table and in two rollups, and the partitions on each. */
async function countsOf(subject: string, of: readonly ShardServer[] = shards) {
  const each = await Promise.all(
    of.map(async ({ all }) => {
      const [row] = await readRows<{ raw: number; ids: number; minutes: number; limits: number; partitions: number[] }>(
        all,
        `SELECT toUInt32(sum(count)) AS raw, toUInt32(uniqExact(id)) AS ids, arraySort(groupUniqArray(partition)) AS partitions,
          (SELECT toUInt32(sum(count)) FROM usage_1m WHERE subject = ${quoted(subject)}) AS minutes,
          (SELECT toUInt32(sum(count)) FROM limits_15m WHERE subject = ${quoted(subject)}) AS limits
        FROM decisions WHERE subject = ${quoted(subject)}`,
      )
      if (row === undefined) throw new Error('ClickHouse gave no row')
      return row
    }),
  )
  const sum = (name: 'raw' | 'ids' | 'minutes' | 'limits') => each.reduce((total, one) => total + one[name], 0)
  return {
    raw: sum('raw'),
    ids: sum('ids'),
    minutes: sum('minutes'),
    limits: sum('limits'),
    partitions: each.map(({ partitions }) => partitions),
  }
}
const onceEach = (count: number) => ({ raw: count, ids: count, minutes: count, limits: count })

async function settledAt(subject: string, count: number) {
  const isThere = async () => {
    const { raw, minutes, limits } = await countsOf(subject)
    return Math.min(raw, minutes, limits) >= count
  }
  await waitUntil(isThere, { deadlineMs: 60_000, everyMs: 200 })
  return countsOf(subject)
}

test.each(['before', 'after'] as const)(
  'A replica that falls silent %s it has a block is left for another one, and each record counts once',
  async (when) => {
    const journal = newJournal()
    const door = await holdFirstInsert(addressOf(0), when)
    const metering = await start(listOf([door.url, addressOf(0)], [addressOf(1)], [addressOf(2)]))
    await send(journal.take(200, 0), 0)
    await door.held
    expect(await settledAt(journal.subject, 200)).toMatchObject(onceEach(200))
    await send(journal.take(100, 0), 0)
    expect(await settledAt(journal.subject, 300)).toMatchObject(onceEach(300))
    expect(metering.said()).toContain('call to ClickHouse failed, retrying')
    await metering.kill('SIGTERM')
  },
  120_000,
)

test('A replica that is dead at the start is a warning, and its shard works by the other one', async () => {
  const journal = newJournal()
  const metering = await start(
    listOf([addressOf(0).replace(/:\d+$/, ':1'), addressOf(0)], [addressOf(1)], [addressOf(2)]),
  )
  await send(journal.take(50, 3), 3)
  expect(await settledAt(journal.subject, 50)).toMatchObject(onceEach(50))
  const isReady = async () => (await metering.ready()).status === 200
  await until(isReady, 30_000)
  expect((await metering.ready()).text).toContain('ECONNREFUSED')
  await metering.kill('SIGTERM')
}, 120_000)

test('Metering that has no name of the cluster inserts nothing through its tables, and says why', async () => {
  const metering = await start(addressOf(0), { WEIR_CLICKHOUSE_CLUSTER: '' })
  const isNamed = async () => (await metering.ready()).text.includes('set WEIR_CLICKHOUSE_CLUSTER')
  await until(isNamed, 30_000)
  await metering.kill('SIGKILL')
}, 60_000)

test('A watermark is written only some seconds after the rows that it is about', async () => {
  const journal = newJournal()
  const metering = await start(listOf([addressOf(0)], [addressOf(1)], [addressOf(2)]))
  const marked = randomUUID()
  await send([...journal.take(10, 0), encodeMark(Date.now(), marked, 0, false)], 0)
  await settledAt(journal.subject, 10)
  const atMs = Date.now()
  const isMarked = async () => {
    for (const { all } of shards) {
      if ((await readRows(all, `SELECT 1 FROM marks WHERE journal = '${marked}'`)).length > 0) return true
    }
    return false
  }
  await until(isMarked, 30_000)
  expect(Date.now() - atMs).toBeGreaterThan(4_000)
  await metering.kill('SIGTERM')
}, 60_000)
