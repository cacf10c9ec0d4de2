import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { folderForTest, forTest } from '../../support/opened.ts'
import { startSecondBroker } from '../../support/servers/changed-kafka.ts'
import { kafkaOptions, topicSpec } from '../../support/servers/kafka-topics.ts'
import { openTestJournal } from '../../support/servers/open-test-journal.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'

const options = kafkaOptions(inject('kafkaBrokers'))

test('missing topics are created with the partitions and settings of the file, and found as wanted afterwards', async () => {
  const specs = await readTopics()
  await ensureTopics(options, specs)
  const second = await ensureTopics(options, specs)
  expect(second).toEqual({ created: [], differences: [], replicationFactor: 1 })
})

test('a topic that differs is reported with both values, and left as it is', async () => {
  const spec = topicSpec(2)
  expect((await ensureTopics(options, [spec])).created).toEqual([spec.name])
  const other = { ...spec, partitions: 3, config: { 'retention.ms': '60000' } }
  const differences = [
    { topic: spec.name, what: 'partitions', wanted: '3', found: '2' },
    { topic: spec.name, what: 'retention.ms', wanted: '60000', found: '3600000' },
  ]
  expect((await ensureTopics(options, [other])).differences).toEqual(differences)
  expect((await ensureTopics(options, [other])).differences).toEqual(differences)
})

test('a topic that has fewer copies than brokers could hold is reported, by the journal too, and one whose broker is away is not', async () => {
  const first = await forTest(startServer(kafkaServer))
  const { name } = topicSpec(2)
  const spec = { name, partitions: 2, replicationFactor: 3, minInsyncReplicas: 2, config: {} }
  await ensureTopics(kafkaOptions(first.address), [spec])
  const log = createLogger('test', 'silent')
  const warned = vi.spyOn(log, 'warn')
  const journal = await openTestJournal(kafkaOptions(first.address), await folderForTest('journal'), [name], { log })
  onTestFinished(() => journal.drain(0).then(() => undefined))
  const isLogged = () => JSON.stringify(warned.mock.calls).includes('each record has one copy')
  await until(isLogged, 30_000)
  expect(journal.lacksCopies).toBe(false)
  const second = await forTest(startSecondBroker(first))
  const { differences } = await ensureTopics(kafkaOptions(first.address), [spec])
  expect(differences).toEqual([
    { topic: spec.name, what: 'replication factor', wanted: '2', found: '1' },
    { topic: spec.name, what: 'min.insync.replicas', wanted: '2', found: '1' },
  ])
  // It asks Kafka again within half a minute.
  await until(() => journal.lacksCopies)
  const copied = { ...spec, name: topicSpec(2).name }
  await ensureTopics(kafkaOptions(first.address), [copied])
  await second.kill('SIGKILL')
  const copiesNow = async () => (await ensureTopics(kafkaOptions(first.address), [copied])).replicationFactor
  // Until the controller has noticed, Kafka leads to a broker that is gone.
  const isAlone = async () => (await copiesNow().catch(() => undefined)) === 1
  await until(isAlone, 30_000)
  const after = await ensureTopics(kafkaOptions(first.address), [copied])
  expect(after.differences.filter(({ what }) => what !== 'min.insync.replicas')).toEqual([])
}, 300_000)

test('processes that create topics at once all succeed', async () => {
  const specs = [topicSpec(2), topicSpec(1)]
  await Promise.all([1, 2, 3].map(() => ensureTopics(options, specs)))
  expect((await ensureTopics(options, specs)).differences).toEqual([])
})

test('a Kafka that is away is an error that a retry may resolve', async () => {
  const away = kafkaOptions('127.0.0.1:1')
  await expect(ensureTopics(away, [topicSpec(1)])).rejects.toMatchObject({ code: 'KAFKA_UNAVAILABLE', retryable: true })
})
