import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { startKafkaWith } from '../../support/servers/changed-kafka.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

/** A stack whose broker stores at most so many bytes of metadata with an offset. */
async function openWith(bytes: number) {
  const stack = await openMeteringStack(() => startKafkaWith({ 'offset.metadata.max.bytes': bytes }))
  onTestFinished(() => stack.close())
  return stack
}

test('A broker that stores less metadata than a block of 100 partitions needs gets smaller blocks, each record once', async () => {
  const stack = await openWith(512)
  const journals = Array.from({ length: 100 }, () => newJournal())
  await stack.admin.createPartitions({ topicPartitions: [{ topic: topics.decisions, count: journals.length }] })
  // The stack's producer does not know these partitions yet.
  const producer = createClient(stack.options).producer({ allowAutoTopicCreation: false })
  onTestFinished(() => producer.disconnect())
  await producer.connect()
  const isLed = () => stack.admin.fetchTopicOffsets(topics.decisions).then(({ length }) => length === journals.length)
  expect(await waitUntil(() => isLed().catch(() => false), { deadlineMs: 40_000 })).toBe(true)
  let sent = 0
  const sendAll = async () => {
    const messages = journals.flatMap((journal, partition) =>
      journal.take(3, partition).map((value) => ({ value, partition })),
    )
    await producer.send({ topic: topics.decisions, messages })
    sent += 3
  }
  const expectAll = async () => {
    for (const { subject } of journals) expect(await settled(stack, subject, sent)).toEqual(once(sent))
  }
  await sendAll()
  const metering = await stack.start()
  // Partitions that are still being started are no part of the first rounds.
  const isRefused = async () => {
    await sendAll()
    return metering.said().includes('Kafka allows less metadata than a block needs: blocks get smaller')
  }
  expect(await waitUntil(isRefused, { deadlineMs: 40_000, everyMs: 1_000 })).toBe(true)
  await expectAll()
  const before = await metering.metric('weir_insert_rows_count')
  await sendAll()
  await expectAll()
  // 512 bytes are some 20 to 50 partitions.
  expect((await metering.metric('weir_insert_rows_count')) - before).toBeLessThan(20)
})

test('A broker that stores too little metadata for any block stops metering, which says what to set; then each record counts once', async () => {
  const stack = await openWith(64)
  const journal = newJournal()
  await stack.send(journal.take(3))
  const metering = await stack.start()
  await metering.ended
  expect(metering.said()).toContain('set its offset.metadata.max.bytes to 256 or more')
  await stack.kafka.kill('SIGTERM')
  await appendFile(join(stack.kafka.dir, 'data', 'server.properties'), 'offset.metadata.max.bytes=256\n')
  await stack.kafka.restart()
  await stack.start()
  expect(await settled(stack, journal.subject, 3)).toEqual(once(3))
})
