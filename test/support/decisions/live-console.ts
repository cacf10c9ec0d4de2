import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { inject } from 'vitest'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { startTables } from '../servers/tables.ts'
import { startConsole } from '../start-console.ts'
import { refusedRecord } from './refused-record.ts'

/** Opens a console with a Kafka and tables of its own. */
export async function openLiveConsole() {
  const kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const tables = await startTables()
  const sender = createRecordSender(kafkaOptions(kafka.address))
  const desk = await startConsole({
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_CLICKHOUSE_URL: tables.url,
    WEIR_REDIS_URL: inject('redisUrl'),
  })
  let seq = 0
  return {
    desk,
    /** Makes a decision that only Kafka has, only the tables have, or both; returns its id. */
    async decide(where: 'kafka' | 'tables' | 'both', more: object = {}): Promise<string> {
      seq += 1
      const whole = refusedRecord(seq, { route: 'POST /v1/search', method: 'POST', ...more })
      if (where !== 'tables') await sender.send(topics.decisions, [{ key: 'acme', value: JSON.stringify(whole) }])
      if (where === 'kafka') return whole.id
      await tables.client.insert({ table: 'weir.decisions', values: [whole], format: 'JSONEachRow' })
      return whole.id
    },
    /** Says that everything until now is in the tables. */
    mark: () =>
      tables.client.command({
        query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq, first_mark, end)
          SELECT '${topics.decisions}', generateUUIDv4(), 0, now64(3) + 60, 1, now64(3), 0`,
      }),
    async close() {
      await desk.close()
      await sender.close()
      await tables.close()
      await kafka.close()
    },
  }
}
