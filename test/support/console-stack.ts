import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { expect, inject } from 'vitest'
import { createWeirTopics } from './servers/kafka-topics.ts'
import { startServer } from './servers/start-server.ts'
import { startTables } from './servers/tables.ts'
import { startConsole } from './start-console.ts'

interface ConsoleOptions {
  /** What the console is told besides the addresses of its servers. */
  readonly environment?: Readonly<Record<string, string>>
  /** Applied before it is returned: an object, or YAML. */
  readonly policy?: object | string
  readonly clickhouseUrl?: string
}

/** A console on a Kafka of its own with Weir's topics, and on the tier's Redis and, unless it is told, ClickHouse. */
export async function startConsoleOnKafka(options: ConsoleOptions = {}) {
  const { environment, policy, clickhouseUrl = inject('clickhouseUrl') } = options
  const kafka = await startServer(kafkaServer)
  await createWeirTopics(kafka.address)
  const addresses = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: clickhouseUrl }
  const desk = await startConsole({ ...addresses, WEIR_REDIS_URL: inject('redisUrl'), ...environment })
  if (policy !== undefined) {
    const text = typeof policy === 'string' ? policy : JSON.stringify(policy)
    expect((await desk.ask('PUT /v1/policy', text)).status).toBe(200)
  }
  const close = async () => {
    await desk.close()
    await kafka.close()
  }
  return { kafka, desk, close }
}

/** The same, on a ClickHouse of its own with all tables. */
export async function startConsoleStack(options: Omit<ConsoleOptions, 'clickhouseUrl'> = {}) {
  const tables = await startTables()
  const stack = await startConsoleOnKafka({ ...options, clickhouseUrl: tables.url })
  const close = async () => {
    await stack.close()
    await tables.close()
  }
  return { ...stack, tables, close }
}
