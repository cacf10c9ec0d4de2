import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Journal } from '@weir/journal/open-journal.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { folderForTest, forTest } from '../../support/opened.ts'
import { countedNs, distinct, endMarks, journalParts, upTo } from '../../support/servers/journal-records.ts'
import { createTopic, kafkaOptions, topicSpec, withAdmin } from '../../support/servers/kafka-topics.ts'
import { openTestJournal } from '../../support/servers/open-test-journal.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'

function append(journal: Journal, topic: number, from: number, to: number, pad = ''): void {
  const log = journal.log(topic)
  for (let n = from; n < to; n += 1) {
    expect(log.append(`subject-${n % 50}`, `{"n":${n},"pad":"${pad}"`, topic === 0)).toBe(true)
  }
}

const holesOf = (records: readonly ReadRecord[]) => journalParts(records).reduce((sum, { holes }) => sum + holes, 0)
test('a start and a stop without Kafka lose nothing: the next process sends it', async () => {
  const server = await forTest(startServer(kafkaServer))
  const options = kafkaOptions(server.address)
  const topic = await createTopic(options, 6)
  await server.kill('SIGTERM')
  const base = await folderForTest('journal')
  const first = await openTestJournal(options, base, [topic])
  append(first, 0, 0, 3_000)
  expect(await first.log(0).writtenInTime()).toBe(true)
  await until(() => first.backlog.oldestAppendMs !== undefined, 5_000)
  expect(first.backlog.records).toBe(3_000)
  expect(await first.drain(500)).toEqual({ left: 3_000 })
  const second = await openTestJournal(options, base, [topic])
  append(second, 0, 3_000, 4_000)
  await server.restart()
  await until(() => second.backlog.records === 0, 30_000)
  await until(() => second.adopted === 0, 30_000)
  expect(await second.drain(20_000)).toEqual({ left: 0 })
  const records = await readTopic(options, topic, (read) => distinct(read) >= 4_000 && endMarks(read).length >= 12)
  expect(countedNs(journalParts(records))).toEqual(upTo(4_000))
  expect(holesOf(records)).toBe(0)
})

test('a topic that is missing holds up no other, however much waits for it, and gets everything when it is there', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const decisions = await createTopic(options, 6)
  const missing = topicSpec(6)
  const journal = await openTestJournal(options, await folderForTest('journal'), [decisions, missing.name])
  onTestFinished(() => journal.drain(0).then(() => undefined))
  const pad = 'x'.repeat(900) // more in all than the publisher keeps in memory
  const rounds = 40
  for (let round = 0; round < rounds; round += 1) {
    append(journal, 0, round * 500, (round + 1) * 500)
    append(journal, 1, round * 1_000, (round + 1) * 1_000, pad)
    const sent = (round + 1) * 500
    await until(() => journal.counters.sent >= sent, 20_000)
  }
  await ensureTopics(options, [missing])
  await until(() => journal.backlog.records === 0, 40_000)
  expect(await journal.drain(20_000)).toEqual({ left: 0 })
  for (const [topic, total] of [
    [decisions, rounds * 500],
    [missing.name, rounds * 1_000],
  ] as const) {
    const records = await readTopic(options, topic, (read) => distinct(read) >= total)
    expect(countedNs(journalParts(records))).toEqual(upTo(total))
    expect(holesOf(records)).toBe(0)
  }
})

test('a topic that is deleted and created again gets all from the first unacknowledged number on', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const spec = topicSpec(6)
  await ensureTopics(options, [spec])
  const journal = await openTestJournal(options, await folderForTest('journal'), [spec.name])
  onTestFinished(() => journal.drain(0).then(() => undefined))
  append(journal, 0, 0, 5_000)
  await until(() => journal.counters.sent >= 5_000, 20_000)
  await withAdmin(options, (admin) => admin.deleteTopics({ topics: [spec.name] }))
  append(journal, 0, 5_000, 10_000)
  await until(() => journal.counters.failedAttempts > 0, 20_000)
  const made = await waitUntil(
    () =>
      ensureTopics(options, [spec]).then(
        () => true,
        () => false,
      ),
    { deadlineMs: 20_000 },
  )
  expect(made).toBe(true)
  await until(() => journal.backlog.records === 0, 30_000)
  expect(await journal.drain(20_000)).toEqual({ left: 0 })
  const records = await readTopic(options, spec.name, (read) => endMarks(read).length === 6)
  const ns = new Set(records.flatMap(({ value }) => JSON.parse(value?.toString() ?? '{}').n ?? []))
  expect(upTo(10_000, 5_000).filter((n) => !ns.has(n))).toEqual([])
})

test('a record that Kafka refuses for good is kept in a file, and a gap record takes its number; nothing else is held up', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const spec = { ...topicSpec(6), config: { 'max.message.bytes': '20000' } }
  await ensureTopics(options, [spec])
  const base = await folderForTest('journal')
  const journal = await openTestJournal(options, base, [spec.name])
  append(journal, 0, 0, 1_000)
  append(journal, 0, 1_000, 1_001, 'x'.repeat(50_000))
  append(journal, 0, 1_001, 3_000)
  expect(await journal.drain(30_000)).toEqual({ left: 0 })
  expect(journal.counters.quarantined).toBe(1)
  const records = await readTopic(options, spec.name, (read) => endMarks(read).length === 6)
  expect(countedNs(journalParts(records))).toEqual(upTo(3_000).filter((n) => n !== 1_000))
  expect(holesOf(records)).toBe(0)
  const gaps = journalParts(records).flatMap((part) => part.gaps)
  expect(gaps).toEqual([expect.objectContaining({ gap: 'refused', count: 1 })])
  const [file = ''] = await readdir(join(base, 'quarantine'))
  expect(gaps[0]?.detail).toContain(file)
})

test('a partition count that is raised is noticed within a minute; what was spread before stays where it is', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 2)
  const journal = await openTestJournal(options, await folderForTest('journal'), [topic])
  append(journal, 0, 0, 500)
  await withAdmin(options, (admin) => admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] }))
  let n = 500
  const isSpread = async () => {
    append(journal, 0, n, n + 50)
    n += 50
    const records = await readTopic(options, topic, (read) => distinct(read) >= n)
    return (
      new Set(
        journalParts(records)
          .filter(({ ns }) => ns.length > 0)
          .map(({ partition }) => partition),
      ).size === 5
    )
  }
  expect(await waitUntil(isSpread, { deadlineMs: 60_000, everyMs: 1_000 })).toBe(true)
  expect(await journal.drain(20_000)).toEqual({ left: 0 })
  const records = await readTopic(options, topic, (read) => endMarks(read).length === 5)
  expect(countedNs(journalParts(records))).toEqual(upTo(n))
  expect(holesOf(records)).toBe(0)
})
