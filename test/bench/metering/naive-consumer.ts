import { randomUUID } from 'node:crypto'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { topics } from '@weir/contracts/topics.ts'
import { Kafka, logLevel } from 'kafkajs'

/**
 * A consumer as the manuals of both clients show it: each record is parsed here, and made to text again by the client.
 * A whole batch is inserted at once; nothing keeps it from inserting twice. It fetches by the defaults of kafkajs, or
 * as much at a time as it is told.
 */
const [brokers = '', clickhouseUrl = '', fetchBytes] = process.argv.slice(2)
const fetches =
  fetchBytes === undefined
    ? {}
    : {
        maxWaitTimeInMs: 600,
        minBytes: 4_000_000,
        maxBytes: Number(fetchBytes) * 3,
        maxBytesPerPartition: Number(fetchBytes),
      }

const clickhouse = createClient({ url: clickhouseUrl, log: { level: ClickHouseLogLevel.OFF } })
const kafka = new Kafka({ brokers: [brokers], clientId: 'naive', logLevel: logLevel.ERROR })
const consumer = kafka.consumer({ groupId: `naive-${randomUUID()}`, ...fetches })
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
      table: 'weir.decisions',
      values,
      format: 'JSONEachRow',
      clickhouse_settings: { async_insert: 0, insert_deduplication_token: randomUUID() },
    })
  },
})
