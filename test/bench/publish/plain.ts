import { createRequire } from 'node:module'
import type { kafkajs } from '@weir/kafka/kafkajs-fixes.ts'
import { makeRecord, type PublishResult, type PublishTask, paced } from './task.ts'

/*
 * What one would write with kafkajs as it comes: messages as objects in memory, sendBatch with acks=all, one request at a time. What is
 * in memory is lost with the process, and nothing is numbered.
 */

const requireOfKafka = createRequire(new URL('../../../packages/kafka/package.json', import.meta.url))
const { Kafka, logLevel, CompressionTypes, Partitioners }: typeof kafkajs = requireOfKafka('kafkajs')

/** What fits into a batch of 1 MB of each of six partitions. */
const messagesPerRequest = 6_000

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

async function publish(): Promise<PublishResult> {
  if (task.perSecond === 'all') append(task.records)
  // The first request finds out who leads what.
  await producer.sendBatch({ topicMessages: [{ topic: task.topic, messages: [{ key: 'first', value: '{}' }] }] })
  const before = process.cpuUsage()
  const startedAt = performance.now()
  let isDone = task.perSecond === 'all'
  if (task.perSecond !== 'all') void paced(task.records, task.perSecond, append).then(() => (isDone = true))
  while (!isDone || waiting.length > 0) {
    if (waiting.length > 0) await send()
    if (!isDone) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - startedAt) / 1_000, cpuMicros: user + system }
}

process.stdout.write(JSON.stringify(await publish()))
process.exit(0)
