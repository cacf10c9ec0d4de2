import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { createDirectory } from '@weir/journal/directory/directory.ts'
import type { Journal } from '@weir/journal/open-journal.ts'
import { PublisherSupervisor } from '@weir/journal/publish/publisher-supervisor.ts'
import { openWriter } from '@weir/journal/write/open-writer.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { folderForTest, forTest } from '../../support/opened.ts'
import { countedNs, distinct, endMarks, journalParts, upTo } from '../../support/servers/journal-records.ts'
import { createTopic, kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { openTestJournal } from '../../support/servers/open-test-journal.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'

/** Appends records `from` to `to` over 50 keys; the journal must take each. */
function appendRange(journal: Journal, from: number, to: number): void {
  const log = journal.log(0)
  for (let n = from; n < to; n += 1) expect(log.append(`subject-${n % 50}`, `{"n":${n}`, true)).toBe(true)
}

/** Each record once by its number, without holes, in the order of appending within each partition. */
function expectAll(records: readonly ReadRecord[], total: number): void {
  const parts = journalParts(records)
  expect(countedNs(parts)).toEqual(upTo(total))
  for (const { ns, holes } of parts) {
    expect(holes).toBe(0)
    expect(ns).toEqual([...ns].sort((a, b) => Number(a) - Number(b)))
  }
}

/** Appends 40 every 20 ms until it is told to stop; says how many there are. */
function keepAppending(journal: Journal) {
  let appended = 0
  const timer = setInterval(() => {
    appendRange(journal, appended, appended + 40)
    appended += 40
  }, 20)
  onTestFinished(() => clearInterval(timer))
  return {
    stop(): number {
      clearInterval(timer)
      return appended
    },
  }
}

test('records arrive numbered without holes and in order, with their key and no headers; a stop ends every partition with a mark', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 6)
  const journal = await openTestJournal(options, await folderForTest('journal'), [topic])
  appendRange(journal, 0, 20_000)
  expect(await journal.log(0).writtenInTime()).toBe(true)
  expect(await journal.drain(20_000)).toEqual({ left: 0 })
  const records = await readTopic(options, topic, (read) => distinct(read) >= 20_000 && endMarks(read).length === 6)
  expectAll(records, 20_000)
  for (const { journal: id, ns, marks, repeats } of journalParts(records)) {
    expect(id).toBe(journal.id)
    expect(repeats).toBe(0)
    expect(marks.at(-1)).toMatchObject({ end: true, seq: ns.length })
  }
  for (const { headers, value, key } of records) {
    expect(headers).toEqual({})
    const n = JSON.parse(value?.toString() ?? '').n
    if (n !== undefined) expect(key?.toString()).toBe(`subject-${n % 50}`)
  }
})

test.each<[string, (server: RunningServer) => unknown, (server: RunningServer) => unknown]>([
  ['is killed and started again', (server) => server.kill('SIGKILL'), (server) => server.restart()],
  [
    'is stopped for longer than a request may take, and goes on',
    (server) => process.kill(server.pid(), 'SIGSTOP'),
    (server) => process.kill(server.pid(), 'SIGCONT'),
  ],
])('through a broker that %s nothing is lost, no number is skipped, and each counts once', async (_, away, back) => {
  const server = await forTest(startServer(kafkaServer))
  const options = kafkaOptions(server.address)
  const topic = await createTopic(options, 6)
  const journal = await openTestJournal(options, await folderForTest('journal'), [topic])
  onTestFinished(() => journal.drain(0).then(() => undefined))
  const load = keepAppending(journal)
  await until(() => journal.counters.sent > 1_000, 10_000)
  await away(server)
  // Each of the six partitions fails, or one request for all of them.
  await until(() => journal.counters.failedAttempts > 0, 30_000)
  expect(journal.backlog).toMatchObject({ records: expect.any(Number), oldestAppendMs: expect.any(Number) })
  await back(server)
  const sentBefore = journal.counters.sent
  await until(() => journal.counters.sent > sentBefore, 30_000)
  const appended = load.stop()
  expect(await journal.drain(30_000)).toEqual({ left: 0 })
  expectAll(await readTopic(options, topic, (read) => distinct(read) >= appended), appended)
})

test('a publisher that dies over and over is replaced and goes on where the files say', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 6)
  const threads: Worker[] = []
  const onThread = (thread: Worker) => void threads.push(thread)
  const journal = await openTestJournal(options, await folderForTest('journal'), [topic], { onThread })
  onTestFinished(() => journal.drain(0).then(() => undefined))
  const load = keepAppending(journal)
  for (let death = 1; death <= 4; death += 1) {
    const sentBefore = journal.counters.sent
    await until(() => journal.counters.sent > sentBefore, 20_000)
    await threads.at(-1)?.terminate()
    await until(() => threads.length > death, 10_000)
  }
  const appended = load.stop()
  expect(await journal.drain(30_000)).toEqual({ left: 0 })
  expectAll(await readTopic(options, topic, (read) => distinct(read) >= appended), appended)
})

test('while the wall clock is behind what marks have said, records go on and marks wait', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const name = await createTopic(options, 1)
  const base = await folderForTest('journal')
  const topics = [{ name, partitions: 1 }]
  const directory = await createDirectory(base, topics)
  onTestFinished(() => directory.release())
  const { journal, path } = directory
  const log = createLogger('test', 'silent')
  const writer = await openWriter(directory, { topics, maxBytes: 2 ** 26, log })
  writer.state.raiseWatermark(Date.now() + 7_200_000)
  const { state } = writer
  const start = {
    brokers: options.brokers,
    clientId: options.clientId,
    base,
    journal,
    path,
    topics,
    shared: state.shared,
  }
  const keeper = new PublisherSupervisor({ start, log, onPartitions: () => undefined, onCorrections: () => undefined })
  onTestFinished(() => keeper.end())
  for (const n of [1, 2]) {
    writer.log(0).append('a', `{"n":${n}`, true)
    const isWrittenDown = () => state.get('sent') === n && existsSync(join(path, 'acked'))
    await until(isWrittenDown, 20_000)
  }
  await writer.close()
  expect(await keeper.drain(20_000)).toBe(true)
  const [part] = journalParts(await readTopic(options, name, (read) => endMarks(read).length === 1))
  expect(part?.ns).toEqual([1, 2])
  expect(part?.marks.filter(({ end }) => !end)).toEqual([])
})
