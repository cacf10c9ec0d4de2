import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { openTopicHealth } from '@weir/kafka/topic-health.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { warningOf } from '@weir/runtime/ops-server.ts'
import { startPolling } from '@weir/runtime/start-polling.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { pollRedis } from './redis-facts.ts'
import { readServerFacts } from './server-facts.ts'

/** Each of these costs the server some milliseconds. */
const everyMs = { topics: 5_000, clickhouse: 30_000, completeness: 5_000 } as const
/** A question that takes longer is of a server that is ill. */
const deadlineMs = 5_000

interface Servers {
  readonly clickhouse: ClickHouseClient
  readonly kafka: KafkaOptions
  /** Undefined where the console has no Redis. */
  readonly servers: Pick<QuotaServers, 'all'> | undefined
}

/**
 * Asks the servers that all processes share how they are. What is not known is not shown: a metric that stands still
 * would look well. /readyz says why, here for Kafka, and elsewhere for the others.
 */
export async function openMonitor({ clickhouse, kafka, servers }: Servers, service: Service) {
  const { run, checkReady } = service
  const ofRedis = servers && pollRedis(servers, service)
  const health = await run.own('health of topics', openTopicHealth(kafka), (one) => one.close())
  const ofTopics = startPolling(
    'health of topics',
    { everyMs: everyMs.topics, deadlineMs, ask: () => health.ask(Object.values(topics)) },
    service,
  )
  checkReady('health of topics', () => warningOf(ofTopics.problem))
  const ofClickhouse = startPolling(
    'health of clickhouse',
    { everyMs: everyMs.clickhouse, deadlineMs, ask: () => readServerFacts(clickhouse, deadlineMs) },
    service,
  )
  const completeness = startPolling(
    'completeness of usage',
    { everyMs: everyMs.completeness, deadlineMs, ask: () => readCompleteTimes(clickhouse) },
    service,
  )
  return {
    topics: () => ofTopics.answer ?? [],
    clickhouse: () => ofClickhouse.answer,
    completeness: () => completeness.answer ?? {},
    redis: () => ofRedis?.answer ?? [],
  }
}

/** What the servers said last. */
export type Monitor = Awaited<ReturnType<typeof openMonitor>>

/** None for rows of which nothing is counted yet. */
async function readCompleteTimes(clickhouse: ClickHouseClient): Promise<Readonly<Record<string, number>>> {
  const found = await Promise.all(
    (['decisions', 'outcomes'] as const).map(async (rows) => {
      const { completeThroughMs } = await readCompleteness(clickhouse, topics[rows])
      return completeThroughMs === undefined ? [] : [[rows, completeThroughMs / 1_000]]
    }),
  )
  return Object.fromEntries(found.flat())
}
