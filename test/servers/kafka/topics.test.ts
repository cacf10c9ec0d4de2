import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { expect, inject, test } from 'vitest'
import { kafkaOptions, topicSpec } from '../../support/servers/kafka-topics.ts'

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

test('processes that create topics at once all succeed', async () => {
  const specs = [topicSpec(2), topicSpec(1)]
  await Promise.all([1, 2, 3].map(() => ensureTopics(options, specs)))
  expect((await ensureTopics(options, specs)).differences).toEqual([])
})

test('a Kafka that is away is an error that a retry may resolve', async () => {
  const away = kafkaOptions('127.0.0.1:1')
  await expect(ensureTopics(away, [topicSpec(1)])).rejects.toMatchObject({ code: 'KAFKA_UNAVAILABLE', retryable: true })
})
