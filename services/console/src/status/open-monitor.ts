import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { openTopicHealth } from '@weir/kafka/topic-health.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { warningOf } from '@weir/runtime/ops-server.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import { startPolling } from '@weir/runtime/start-polling.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { openRedisMetrics } from './redis-metrics.ts'
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
 * Asks the servers that all processes share how they are, and registers what they say. What is not known is not shown:
 * a metric that stands still would look well. /readyz says why, here for Kafka, and elsewhere for the others.
 */
export async function openMonitor({ clickhouse, kafka, servers }: Servers, service: Service): Promise<void> {
  const { run, metrics, checkReady } = service
  if (servers !== undefined) openRedisMetrics(servers, service)
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
  registerScraped(metrics, {
    weir_topic_partitions: {
      help: 'Partitions with less than all copies',
      labels: ['topic', 'state'],
      cells: () => (ofTopics.answer ?? []).map(([topic, state, count]) => [[topic, state], count]),
    },
    weir_clickhouse_parts_max: {
      help: 'Active parts of the partition of a table that has most',
      label: 'table',
      readAll: () => ofClickhouse.answer?.partsMax ?? {},
    },
    weir_clickhouse_disk_free_ratio: {
      help: 'Free share of a disk of ClickHouse',
      label: 'disk',
      readAll: () => ofClickhouse.answer?.diskFreeRatio ?? {},
    },
    weir_clickhouse_replica_delay_seconds: {
      help: 'How far this server is behind, of replicated tables',
      label: 'table',
      readAll: () => ofClickhouse.answer?.replicaDelaySeconds ?? {},
    },
    weir_usage_complete_timestamp_seconds: {
      help: 'Until when all that was decided is counted',
      label: 'rows',
      readAll: () => completeness.answer ?? {},
    },
  })
}

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
