import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { topics } from '@weir/contracts/topics.ts'
import { Kafka, logLevel } from 'kafkajs'

/**
 * Fetches as kafkajs does by itself and looks at nothing: what it and Kafka make possible. Tells how many records came,
 * as a metric.
 */
const [brokers = '', port = ''] = process.argv.slice(2)
let seen = 0
createServer((_, response) => response.end(`weir_decisions_watched_total ${seen}\n`)).listen(Number(port), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))

const kafka = new Kafka({ brokers: [brokers], clientId: 'nothing', logLevel: logLevel.ERROR })
const consumer = kafka.consumer({ groupId: `nothing-${randomUUID()}` })
await consumer.connect()
await consumer.subscribe({ topics: [topics.decisions], fromBeginning: true })
await consumer.run({
  partitionsConsumedConcurrently: 3,
  eachBatch: async ({ batch }) => {
    seen += batch.messages.length
  },
})
