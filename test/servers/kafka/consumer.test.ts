import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { BatchConsumer, type ConsumeOptions, type RecordBatch } from '@weir/kafka/consume-batches.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { forTest } from '../../support/opened.ts'
import { createTopic, kafkaOptions, topicSpec, withAdmin } from '../../support/servers/kafka-topics.ts'
import { testConsumer } from '../../support/servers/read-topic.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'

/** Sends `count` records, valued by number, over all partitions. */
async function sendNumbers(options: KafkaOptions, topic: string, from: number, to: number): Promise<void> {
  const sender = createRecordSender(options)
  const records = Array.from({ length: to - from }, (_, at) => ({ key: `key-${from + at}`, value: String(from + at) }))
  await sender.send(topic, records)
  await sender.close()
}

function start(options: Omit<ConsumeOptions, 'onCrash'>): { consumer: BatchConsumer; crashes: unknown[] } {
  const crashes: unknown[] = []
  const consumer = new BatchConsumer({ ...options, onCrash: (error) => crashes.push(error) })
  onTestFinished(() => consumer.stop())
  return { consumer, crashes }
}

/** A broker that has just started answers before it leads its partitions again. */
const untilLed = (options: KafkaOptions, topic: string) =>
  withAdmin(options, (admin) => until(() => admin.fetchTopicOffsets(topic).then(Boolean, () => false)))

const numbersOf = (batch: RecordBatch) => batch.records.map((record) => Number(record.value?.toString()))
const nextOffset = (batch: RecordBatch) => String(BigInt(batch.records.at(-1)?.offset ?? '0') + 1n)
const allNumbers = (total: number) => Array.from({ length: total }, (_, n) => n)

async function committed(options: KafkaOptions, groupId: string, topic: string) {
  const offsets = await withAdmin(options, (admin) => admin.fetchOffsets({ groupId, topics: [topic] }))
  return offsets.flatMap(({ partitions }) => partitions)
}

test('a new group reads from the beginning, and its next start reads on from what was committed, metadata kept', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 1)
  const group = testConsumer(options, [topic])
  await sendNumbers(options, topic, 0, 10)
  const seen: number[] = []
  const first = start({
    ...group,
    async onBatch(batch) {
      seen.push(...numbersOf(batch))
      await batch.commit('4', '{"to":"10"}')
    },
  })
  await until(() => seen.length >= 10)
  await first.consumer.stop()
  expect(await committed(options, group.groupId, topic)).toEqual([
    { partition: 0, offset: '4', metadata: '{"to":"10"}' },
  ])
  const again: number[] = []
  start({ ...group, onBatch: async (batch) => void again.push(...numbersOf(batch)) })
  await until(() => again.length >= 6)
  expect(again).toEqual([4, 5, 6, 7, 8, 9])
})

test('a consumer outlives kill -9 of the broker: it does not crash, keeps its place and reads on', async () => {
  const server = await forTest(startServer(kafkaServer))
  const options = kafkaOptions(server.address)
  const topic = await createTopic(options, 3)
  const seen: number[] = []
  const { consumer, crashes } = start({
    ...testConsumer(options, [topic]),
    async onBatch(batch) {
      await batch.commit(nextOffset(batch))
      seen.push(...numbersOf(batch))
    },
  })
  await sendNumbers(options, topic, 0, 100)
  await until(() => seen.length >= 100)
  await server.kill('SIGKILL')
  await until(() => consumer.status.state === 'connecting')
  expect(consumer.status.waitingFor).not.toBe('')
  await server.restart()
  await untilLed(options, topic)
  await sendNumbers(options, topic, 100, 200)
  await until(() => new Set(seen).size >= 200)
  expect(seen.sort((a, b) => a - b)).toEqual(allNumbers(200))
  await until(() => consumer.status.state === 'running')
  expect(crashes).toEqual([])
})

test('what is committed for an old assignment is refused, even by a member that Kafka would let commit', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 2)
  const group = testConsumer(options, [topic])
  await sendNumbers(options, topic, 0, 50)
  const kept = new Map<number, RecordBatch>()
  const one = start({
    ...group,
    async onBatch(batch) {
      if (!kept.has(batch.partition)) kept.set(batch.partition, batch)
    },
  })
  await until(() => kept.size === 2)
  expect([...kept.values()].map((batch) => batch.isFenced())).toEqual([false, false])
  start({ ...group, onBatch: async () => {} })
  await until(() => one.consumer.status.assigned[topic]?.length === 1)
  for (const batch of kept.values()) {
    expect(batch.isFenced()).toBe(true)
    await expect(batch.commit(nextOffset(batch))).rejects.toMatchObject({ code: 'PARTITION_LOST' })
  }
  expect((await committed(options, group.groupId, topic)).map(({ offset }) => offset)).toEqual(['-1', '-1'])
  expect(one.crashes).toEqual([])
})

test('a member that slept through its session cannot commit; the next owner has everything, and it joins again', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 1)
  const group = testConsumer(options, [topic])
  await sendNumbers(options, topic, 0, 5)
  const { promise: woken, resolve: wake } = Promise.withResolvers<void>()
  const refusals: unknown[] = []
  const asleep = start({
    ...group,
    async onBatch(batch) {
      await woken
      await batch.commit(nextOffset(batch)).catch((error: unknown) => {
        refusals.push(error)
        throw error
      })
    },
  })
  await until(() => asleep.consumer.status.state === 'running')
  const seen: number[] = []
  const heir = start({
    ...group,
    async onBatch(batch) {
      seen.push(...numbersOf(batch))
      await batch.commit(nextOffset(batch))
    },
  })
  await until(() => seen.length >= 5)
  expect(seen).toEqual([0, 1, 2, 3, 4])
  wake()
  await until(() => refusals.length > 0)
  expect(refusals[0]).toMatchObject({ code: 'PARTITION_LOST' })
  await until(() => asleep.consumer.status.state === 'running' && heir.consumer.status.state === 'running')
  expect([...asleep.crashes, ...heir.crashes]).toEqual([])
})

test.each([new TypeError('undefined is not a function'), new Error('no room on disk')])(
  'a fault of the handler ends the consumer, once and loudly: %s',
  async (fault) => {
    const options = kafkaOptions(inject('kafkaBrokers'))
    const topic = await createTopic(options, 1)
    await sendNumbers(options, topic, 0, 1)
    let calls = 0
    const { consumer, crashes } = start({
      ...testConsumer(options, [topic]),
      async onBatch() {
        calls += 1
        throw fault
      },
    })
    await until(() => consumer.status.state === 'crashed')
    expect(crashes).toEqual([fault])
    expect(consumer.status.waitingFor).toBe(fault.message)
    await consumer.stop()
    expect(calls).toBe(1)
  },
)

test('a topic that is missing at the start is named, and read as soon as it exists', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const spec = topicSpec(1)
  const seen: number[] = []
  const { consumer } = start({
    ...testConsumer(options, [spec.name]),
    onBatch: async (batch) => void seen.push(...numbersOf(batch)),
  })
  await until(() => consumer.status.waitingFor.includes(spec.name))
  expect(consumer.status.state).toBe('connecting')
  await ensureTopics(options, [spec])
  await sendNumbers(options, spec.name, 0, 3)
  await until(() => seen.length === 3)
  expect(consumer.status).toMatchObject({ state: 'running', waitingFor: '', assigned: { [spec.name]: [0] } })
})

test('a consumer that never reached Kafka says so and stops at once', async () => {
  const { consumer, crashes } = start({ ...testConsumer(kafkaOptions('127.0.0.1:1'), ['t']), onBatch: async () => {} })
  await until(() => consumer.status.waitingFor.includes('127.0.0.1:1'))
  await consumer.stop()
  expect(crashes).toEqual([])
})

test('what came while a batch was worked off does not wait for the whole time of a fetch again', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 1)
  const maxWaitMs = 3_000
  await sendNumbers(options, topic, 0, 1)
  const handed: number[] = []
  const { promise: worked, resolve: endWork } = Promise.withResolvers<void>()
  start({
    ...testConsumer(options, [topic]),
    maxWaitMs,
    minBytes: 1_000_000,
    async onBatch() {
      handed.push(performance.now())
      if (handed.length === 1) await worked
    },
  })
  await until(() => handed.length === 1)
  await sendNumbers(options, topic, 1, 2)
  await until(() => performance.now() - (handed[0] ?? 0) >= maxWaitMs)
  const endedAt = performance.now()
  endWork()
  await until(() => handed.length === 2)
  expect((handed[1] ?? Number.NaN) - endedAt).toBeLessThan(maxWaitMs / 2)
})

test('an idle connection leaves the process asleep', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 1)
  const { consumer } = start({ ...testConsumer(options, [topic]), maxWaitMs: 1_000, onBatch: async () => {} })
  await until(() => consumer.status.state === 'running')
  const original = globalThis.setTimeout
  let armed = 0
  onTestFinished(() => {
    globalThis.setTimeout = original
  })
  globalThis.setTimeout = new Proxy(original, {
    apply(target, self, args) {
      armed += 1
      return Reflect.apply(target, self, args)
    },
  })
  // What is counted is the timers up to the next heartbeat, a second at most.
  const before = consumer.status.lastProgressMs
  await until(() => consumer.status.lastProgressMs > before)
  expect(armed).toBeLessThan(100)
})
