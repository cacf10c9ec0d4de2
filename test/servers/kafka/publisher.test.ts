import { openPublisher } from '@weir/kafka/publisher.ts'
import type { RecordLog } from '@weir/kafka/record-log.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createTopic, kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'
import { startServer } from '../../support/servers/start-server.ts'

interface Line {
  readonly n: number
  readonly journal: string
  readonly seq: number
}

const lineOf = (record: ReadRecord): Line => JSON.parse(record.value?.toString() ?? '')

/** Per partition: the numbers in the order of the log, repeats left out, as metering does it. */
function numbersByPartition(records: readonly ReadRecord[]): Map<number, Line[]> {
  const byPartition = new Map<number, Line[]>()
  for (const record of records) {
    const line = lineOf(record)
    const lines = byPartition.get(record.partition) ?? []
    byPartition.set(record.partition, lines)
    if (line.seq >= lines.length) lines.push(line)
  }
  return byPartition
}

function expectNoHoles(records: readonly ReadRecord[], total: number): void {
  const byPartition = [...numbersByPartition(records).values()]
  for (const lines of byPartition) {
    expect(lines.map((line) => line.seq)).toEqual(lines.map((_, at) => at))
    expect(new Set(lines.map((line) => line.journal)).size).toBe(1)
    const appended = lines.map((line) => line.n)
    expect(appended).toEqual([...appended].sort((a, b) => a - b))
  }
  expect(
    byPartition
      .flat()
      .map((line) => line.n)
      .sort((a, b) => a - b),
  ).toEqual(Array.from({ length: total }, (_, n) => n))
}

const distinct = (records: readonly ReadRecord[]) => new Set(records.map((record) => lineOf(record).n)).size

/** Appends records `from` to `to` over 50 keys; the log must take each. */
function appendRange(log: RecordLog, from: number, to: number): void {
  for (let n = from; n < to; n += 1) expect(log.append(`subject-${n % 50}`, `{"n":${n}`)).toBe(true)
}

test('records arrive numbered without holes and in the order they were appended, with their key and no headers', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 6)
  const log = await openPublisher({ ...options, topic, partitionsWhenAway: 6 })
  appendRange(log, 0, 5_000)
  expect(await log.drain(10_000)).toEqual({ lost: 0 })
  const records = await readTopic(options, topic, (read) => read.length >= 5_000)
  expect(records.length).toBe(5_000)
  expectNoHoles(records, 5_000)
  for (const record of records) {
    expect(record.headers).toEqual({})
    expect(record.key?.toString()).toBe(`subject-${lineOf(record).n % 50}`)
  }
})

test('through kill -9 of the broker and its restart nothing is lost and no number is skipped', async () => {
  const server = await startServer(kafkaServer)
  onTestFinished(() => server.close())
  const options = kafkaOptions(server.address)
  const topic = await createTopic(options, 6)
  const log = await openPublisher({ ...options, topic, partitionsWhenAway: 6 })
  onTestFinished(() => log.drain(0).then(() => undefined))
  let appended = 0
  const appendSome = () => {
    appendRange(log, appended, appended + 200)
    appended += 200
  }
  const load = setInterval(appendSome, 20)
  onTestFinished(() => clearInterval(load))
  expect(await waitUntil(() => log.counters.sent > 2_000, { deadlineMs: 10_000 })).toBe(true)
  await server.kill('SIGKILL')
  expect(await waitUntil(() => log.counters.failedAttempts > 6, { deadlineMs: 10_000 })).toBe(true)
  await server.restart()
  const sentBefore = log.counters.sent
  expect(await waitUntil(() => log.counters.sent > sentBefore, { deadlineMs: 30_000 })).toBe(true)
  clearInterval(load)
  expect(await log.drain(30_000)).toEqual({ lost: 0 })
  const records = await readTopic(options, topic, (read) => distinct(read) >= appended)
  expectNoHoles(records, appended)
})

test('a start without Kafka takes records to the bound and delivers them when Kafka comes', async () => {
  const server = await startServer(kafkaServer)
  onTestFinished(() => server.close())
  const options = kafkaOptions(server.address)
  const topic = await createTopic(options, 6)
  await server.kill('SIGTERM')
  const bounds = { records: 3_000, bytes: 10_000_000 }
  const log = await openPublisher({ ...options, topic, partitionsWhenAway: 6, bounds })
  appendRange(log, 0, 3_000)
  expect(log.append('one more', '{"n":3000')).toBe(false)
  expect(log.backlog).toMatchObject({ records: 3_000, oldestAppendMs: expect.any(Number) })
  await server.restart()
  expect(await waitUntil(() => log.backlog.records === 0, { deadlineMs: 30_000 })).toBe(true)
  expect(log.backlog).toEqual({ records: 0, bytes: 0, oldestAppendMs: undefined })
  expect(await log.drain(1_000)).toEqual({ lost: 0 })
  expectNoHoles(await readTopic(options, topic, (read) => distinct(read) >= 3_000), 3_000)
})

test('a stop that cannot reach Kafka ends at its deadline and says how many records are lost', async () => {
  const log = await openPublisher({ ...kafkaOptions('127.0.0.1:1'), topic: 'nowhere', partitionsWhenAway: 6 })
  appendRange(log, 0, 10)
  expect(await log.drain(300)).toEqual({ lost: 10 })
  expect(log.append('subject', '{"n":10')).toBe(false)
})
