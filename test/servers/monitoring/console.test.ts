import { formatTs } from '@weir/contracts/timestamp.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { forFile, forTest } from '../../support/opened.ts'
import { metricIn } from '../../support/read-metric.ts'
import { startSecondBroker } from '../../support/servers/changed-kafka.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startCluster } from '../../support/servers/redis-cluster.ts'
import { startSentinels } from '../../support/servers/redis-sentinel.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { startTables } from '../../support/servers/tables.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'

const letters = topics.outcomesDeadLetters
const [kafka, tables] = await Promise.all([forFile(startServer(kafkaServer)), forFile(startTables())])
const second = await forFile(startSecondBroker(kafka))
// One of two partitions is on the second broker alone.
const specs = (await readTopics()).map((spec) =>
  spec.name === letters ? { ...spec, partitions: 2, replicationFactor: 1 } : spec,
)
await ensureTopics(kafkaOptions(kafka.address), specs)

const environment = () => ({ WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url })
async function start(more: Readonly<Record<string, string>> = {}): Promise<RunningConsole> {
  const desk = await forTest(startConsole({ ...environment(), ...more }))
  return desk
}

/** A page of metrics, which must come whatever the servers do. */
async function scrape({ ops }: RunningConsole) {
  const answer = await fetch(`${ops}/metrics`, { signal: AbortSignal.timeout(1_000) })
  expect(answer.status).toBe(200)
  const page = await answer.text()
  return (name: string) => metricIn(page, name)
}

test('The master that Sentinels name is shown with its replica and its scripts; one that does not answer is down', async () => {
  const setup = await forTest(startSentinels())
  const [master, replica] = setup.servers
  const redis = new Redis({ port: master?.port ?? 0, host: '127.0.0.1' })
  onTestFinished(() => redis.disconnect())
  const sha = String(await redis.script('LOAD', 'return 1'))
  for (let call = 0; call < 3; call += 1) await redis.evalsha(sha, 0)
  const desk = await start({ WEIR_REDIS_URL: setup.url })
  const of = '{server="weir",role="master"'
  await until(async () => (await scrape(desk))(`weir_redis_up${of}`) === 1)
  const value = await scrape(desk)
  expect(value(`weir_redis_command_calls_total${of},command="evalsha"`)).toBe(3)
  expect(value(`weir_redis_command_seconds_total${of},command="evalsha"`)).toBeLessThan(1)
  const exact = { replicas_connected: 1, persistence_ok: 1, evicted_keys_total: 0, memory_max_bytes: 0 }
  for (const [name, wanted] of Object.entries(exact)) {
    expect([name, value(`weir_redis_${name}${of}`)]).toEqual([name, wanted])
  }
  expect(value(`weir_redis_replica_lag_bytes${of}`)).toBeLessThan(100_000)
  const positive = ['uptime_seconds', 'memory_used_bytes', 'memory_rss_bytes', 'connected_clients', 'ping_seconds']
  for (const name of [...positive, 'cpu_seconds_total', 'network_bytes_total', 'keyspace_misses_total']) {
    expect([name, (value(`weir_redis_${name}`) ?? -1) >= 0]).toEqual([name, true])
  }
  replica?.signal('SIGKILL')
  await until(async () => (await scrape(desk))(`weir_redis_replicas_connected${of}`) === 0)
  expect((await scrape(desk))('weir_redis_replica_lag_bytes')).toBeUndefined()
  master?.signal('SIGSTOP')
  await until(async () => (await scrape(desk))(`weir_redis_up${of}`) === 0)
  expect((await scrape(desk))('weir_redis_uptime_seconds')).toBeUndefined()
})

test('Each master of a Cluster is shown', async () => {
  const cluster = await forTest(startCluster())
  const desk = await start({ WEIR_REDIS_URL: cluster.url })
  await until(async () => (await scrape(desk))('weir_redis_up') === 3)
  const value = await scrape(desk)
  for (const { port } of cluster.nodes) expect(value(`weir_redis_up{server="127.0.0.1:${port}",role="master"`)).toBe(1)
})

test('ClickHouse is shown with its parts, its disk and until when usage is complete; without it nothing is', async () => {
  await tables.client.command({ query: 'SYSTEM STOP MERGES weir.marks' })
  const mark = (second: number) => {
    const at = formatTs(Date.parse('2026-11-20T10:00:00Z') + second * 1_000)
    const row = { topic: topics.decisions, journal: crypto.randomUUID(), partition: 0, seq: 1, end: true }
    return tables.client.insert({
      table: 'marks',
      values: [{ ...row, mark: at, first_mark: at }],
      format: 'JSONEachRow',
    })
  }
  for (const second of [0, 1, 2]) await mark(second)
  const desk = await start({ WEIR_REDIS_URL: inject('redisUrl') })
  await until(async () => (await scrape(desk))('weir_usage_complete_timestamp_seconds') !== undefined)
  await until(async () => (await scrape(desk))('weir_clickhouse_parts_max') !== undefined)
  const value = await scrape(desk)
  expect(value('weir_clickhouse_parts_max{table="marks"}')).toBe(3)
  expect(value('weir_clickhouse_disk_free_ratio{disk="default"}')).toBeGreaterThan(0)
  expect(value('weir_clickhouse_disk_free_ratio{disk="default"}')).toBeLessThan(1)
  const complete = Date.parse('2026-11-20T10:00:02Z') / 1_000
  expect(value('weir_usage_complete_timestamp_seconds{rows="decisions"}')).toBe(complete)
  expect(value('weir_usage_complete_timestamp_seconds{rows="outcomes"}')).toBeUndefined()
  await tables.kill()
  await until(async () => (await scrape(desk))('weir_usage_complete_timestamp_seconds') === undefined)
  expect(await (await fetch(`${desk.ops}/readyz`)).text()).toContain('ClickHouse')
  await tables.restart()
  await until(async () => (await scrape(desk))('weir_usage_complete_timestamp_seconds') === complete)
})

test('A topic has its partitions without all copies counted, and without brokers none, with the reason in /readyz', async () => {
  const desk = await start()
  const found = async (topic: string) => {
    const value = await scrape(desk)
    const states = ['under_replicated', 'under_min_isr', 'leaderless']
    return states.map((state) => value(`weir_topic_partitions{topic="${topic}",state="${state}"}`))
  }
  await until(async () => (await found(topics.decisions))[0] !== undefined)
  for (const topic of Object.values(topics)) expect([topic, ...(await found(topic))]).toEqual([topic, 0, 0, 0])
  await second.kill('SIGKILL')
  await until(async () => (await found(topics.decisions))[0] === 6)
  expect(await found(topics.decisions)).toEqual([6, 6, 0])
  expect((await found(letters))[2]).toBe(1)
  await kafka.kill('SIGKILL')
  await until(async () => (await found(topics.decisions))[0] === undefined)
  const ready = await (await fetch(`${desk.ops}/readyz`)).text()
  expect(ready).toContain('health of topics: warning: ')
  await kafka.restart()
  await until(async () => (await found(topics.decisions))[0] === 6)
})
