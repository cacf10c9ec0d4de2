import { randomUUID } from 'node:crypto'
import { projectRoot } from '@weir/cli/project.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import type { Redis } from 'ioredis'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startOwnClickhouse } from '../servers/own-clickhouse.ts'
import { type RunningServer, startServer } from '../servers/start-server.ts'

/** A Redis, a Kafka and a ClickHouse of a test's own: topics and tables have one name, and data is broken by hand. */
export interface AuditStack {
  readonly kafka: RunningServer
  readonly clickhouse: ClickHouseClient
  readonly redis: Redis
  readonly servers: QuotaServers
  /** What commands and services need to find them. */
  readonly environment: Readonly<Record<string, string>>
  rows<T>(query: string): Promise<T[]>
  close(): Promise<void>
}

export async function startAuditStack(): Promise<AuditStack> {
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
    environment: {
      WEIR_REDIS_URL: redisRunning.address,
      WEIR_KAFKA_BROKERS: kafka.address,
      WEIR_CLICKHOUSE_URL: clickhouseRunning.address,
    },
    async rows<T>(query: string) {
      return (await clickhouse.query({ query, format: 'JSONEachRow' })).json<T>()
    },
    async close() {
      redis.disconnect()
      await clickhouse.close()
      await Promise.all([redisRunning.close(), kafka.close(), clickhouseRunning.close()])
    },
  }
}
