import { randomUUID } from 'node:crypto'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { topics } from '@weir/contracts/topics.ts'
import { Kafka, logLevel } from 'kafkajs'

/**
 * A consumer as the manuals of both clients show it. It fetches as much at a time as metering, and inserts a whole batch at once, so that
 * only what is done to a record makes the difference: parsed here, made to text again by the client. Nothing keeps it from inserting twice.
 */
const [brokers = '', clickhouseUrl = ''] = process.argv.slice(2)
const fetchBytes = 4_000_000

const clickhouse = createClient({ url: clickhouseUrl, log: { level: ClickHouseLogLevel.OFF } })
const kafka = new Kafka({ brokers: [brokers], clientId: 'naive', logLevel: logLevel.ERROR })
const consumer = kafka.consumer({
  groupId: `naive-${randomUUID()}`,
  maxWaitTimeInMs: 300,
  minBytes: fetchBytes,
  maxBytes: fetchBytes * 5,
  maxBytesPerPartition: fetchBytes,
})
process.on('SIGTERM', () => process.exit(0))
await consumer.connect()
await consumer.subscribe({ topics: [topics.decisions], fromBeginning: true })
await consumer.run({
  partitionsConsumedConcurrently: 3,
  eachBatch: async ({ batch }) => {
    const values = batch.messages.map(({ value, offset }) => {
      const record: object = JSON.parse(String(value))
      return { ...record, partition: batch.partition, offset }
    })
    await clickhouse.insert({
      ...{ table: 'weir.decisions', values, format: 'JSONEachRow' },
      clickhouse_settings: { async_insert: 0, insert_deduplication_token: randomUUID() },
    })
  },
})
