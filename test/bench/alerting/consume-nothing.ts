import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { topics } from '@weir/contracts/topics.ts'
import { Kafka, logLevel } from 'kafkajs'

/** Fetches as alerting does and looks at nothing: what kafkajs and Kafka make possible. Tells how many records came, as a metric. */
const [brokers = '', port = ''] = process.argv.slice(2)
let seen = 0
createServer((_, response) => response.end(`weir_decisions_watched_total ${seen}\n`)).listen(Number(port), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))

const kafka = new Kafka({ brokers: [brokers], clientId: 'nothing', logLevel: logLevel.ERROR })
const consumer = kafka.consumer({
  ...{ groupId: `nothing-${randomUUID()}`, maxWaitTimeInMs: 250, minBytes: 1_000_000 },
  ...{ maxBytes: 3_000_000, maxBytesPerPartition: 1_000_000 },
})
await consumer.connect()
await consumer.subscribe({ topics: [topics.decisions], fromBeginning: true })
await consumer.run({
  partitionsConsumedConcurrently: 3,
  eachBatch: async ({ batch }) => {
    seen += batch.messages.length
  },
})
