import { randomUUID } from 'node:crypto'
import { projectRoot } from '@weir/cli/project.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startOwnClickhouse } from '../servers/own-clickhouse.ts'
import { startServer } from '../servers/start-server.ts'

/** A Redis, a Kafka and a ClickHouse of a test's own: topics and tables have one name, and data is broken by hand. */
export type AuditStack = Awaited<ReturnType<typeof startAuditStack>>

export async function startAuditStack() {
  const [redisRunning, kafka, clickhouseRunning] = await Promise.all([
    startServer(redisServer),
    startServer(kafkaServer),
    startOwnClickhouse(),
  ])
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const clickhouse = connectClickhouse(clickhouseRunning.address, `test-${randomUUID()}`)
  await migrate(clickhouse, await readMigrations(`${projectRoot}/infra/clickhouse/migrations`))
  const redis = connectRedis(redisRunning.address, { role: 'limiter', onError: () => undefined })
  if (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve))
  return {
    kafka,
    clickhouse,
    redis,
    servers: { serverOf: () => redis, all: () => [redis] },
    /** What commands and services need to find them. */
    environment: {
      WEIR_REDIS_URL: redisRunning.address,
      WEIR_KAFKA_BROKERS: kafka.address,
      WEIR_CLICKHOUSE_URL: clickhouseRunning.address,
    },
    rows: <T>(query: string) => readRows<T>(clickhouse, query),
    async close() {
      redis.disconnect()
      await clickhouse.close()
      await Promise.all([redisRunning.close(), kafka.close(), clickhouseRunning.close()])
    },
  }
}
