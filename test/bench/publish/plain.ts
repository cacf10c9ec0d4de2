import { createRequire } from 'node:module'
import type { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import { makeRecord, type PublishResult, type PublishTask, paced } from './task.ts'

/*
 * What one would write with kafkajs as it comes: messages as objects in memory, sendBatch with acks=all, one request at
 * a time. What is in memory is lost with the process, and nothing is numbered.
 */

const requireOfKafka = createRequire(new URL('../../../packages/kafka/package.json', import.meta.url))
const { Kafka, logLevel, CompressionTypes, Partitioners }: typeof kafkajs = requireOfKafka('kafkajs')

/** What fits into a batch of 1 MB of each of six partitions. */
const messagesPerRequest = 6_000

/** As long as the publisher gathers. */
const pauseMs = 50

const task: PublishTask = JSON.parse(process.argv[2] ?? '{}')
const kafka = new Kafka({ brokers: [task.broker], clientId: 'bench', logLevel: logLevel.NOTHING })
const producer = kafka.producer({
  allowAutoTopicCreation: false,
  createPartitioner: Partitioners.DefaultPartitioner,
})
await producer.connect()
const compression = task.gzip ? CompressionTypes.GZIP : CompressionTypes.None

let waiting: { key: string; value: string }[] = []
let n = 0
function append(count: number): void {
  for (const end = n + count; n < end; n += 1) {
    const { key, openLine } = makeRecord(n)
    waiting.push({ key, value: `${openLine}}` })
  }
}

async function send(): Promise<void> {
  const messages = waiting.slice(0, messagesPerRequest)
  waiting = waiting.slice(messagesPerRequest)
  await producer.sendBatch({ acks: -1, compression, topicMessages: [{ topic: task.topic, messages }] })
}

/** One request at a time, and at most one per pause, as a program would gather them. */
async function sendAsTheyCome(perSecond: number): Promise<void> {
  let sending = Promise.resolve()
  let isSending = false
  let nextMs = performance.now() + pauseMs
  await paced(task.records, perSecond, (count) => {
    append(count)
    if (isSending || performance.now() < nextMs) return
    isSending = true
    nextMs = performance.now() + pauseMs
    sending = send().finally(() => {
      isSending = false
    })
  })
  await sending
}

async function publish(): Promise<PublishResult> {
  if (task.perSecond === 'all') append(task.records)
  // The first request finds out who leads what.
  await producer.sendBatch({ topicMessages: [{ topic: task.topic, messages: [{ key: 'first', value: '{}' }] }] })
  const before = process.cpuUsage()
  const startedAt = performance.now()
  if (task.perSecond !== 'all') await sendAsTheyCome(task.perSecond)
  while (waiting.length > 0) await send()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - startedAt) / 1_000, cpuMicros: user + system }
}

process.stdout.write(JSON.stringify(await publish()))
process.exit(0)
