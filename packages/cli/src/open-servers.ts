import type { AuditPorts } from '@weir/audit/audit-all.ts'
import { catchUp } from '@weir/clickhouse/catch-up.ts'
import { type ClickHouseClient, clickhouseMissing, connectClickhouse, throwRefusal } from '@weir/clickhouse/connect.ts'
import { connectReplicas } from '@weir/clickhouse/connect-replicas.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { createLimitAdmin, type LimitAdmin } from '@weir/redis/limit-admin.ts'
import { isRedisFault, mastersOf, redisUnavailable, serverFinder } from '@weir/redis/limit-connection.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { redisVariables } from '@weir/redis/redis-url.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CommandContext } from './command-context.ts'
import { findClickhouse, isGiven, kafkaFrom, localKafka } from './find-servers.ts'
import { nothingToAsk, readStateFile } from './read-state-file.ts'

/** A question may sum the rows of all subjects over months, and a person waits for the answer. */
const requestMs = 600_000

/** Runs `use` with the ClickHouse of the environment, else of the `weir up` on the data directory. */
export async function withClickhouse<T>(
  { environment }: CommandContext,
  dataDir: string,
  use: (client: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const own = readStateFile(dataDir, 'clickhouse')
  if (own === undefined && !isGiven(environment, 'WEIR_CLICKHOUSE_URL'))
    throw nothingToAsk('ClickHouse', 'WEIR_CLICKHOUSE_URL', dataDir)
  const client = connectClickhouse(findClickhouse(environment, own), 'weir-audit', requestMs)
  try {
    const missing = await clickhouseMissing(client)
    if (missing !== undefined) throw new WeirError('CLICKHOUSE_UNAVAILABLE', missing)
    return await use(client).catch(throwRefusal(client))
  } finally {
    await client.close()
  }
}

/** Runs `use` with the replicas of a client's cluster, if it is of one. */
export async function withReplicas<T>(
  { environment }: CommandContext,
  { cluster }: ClickHouseClient,
  use: (cluster: Pick<AuditPorts, 'shards' | 'catchUp'>) => Promise<T>,
): Promise<T> {
  if (cluster === undefined) return use({})
  const replicas = connectReplicas(findClickhouse(environment), 'weir-audit', requestMs)
  try {
    const shards = replicas.flatMap(([first]) => first ?? [])
    return await use({
      shards,
      catchUp: async () => void (await Promise.all(replicas.flat().map((one) => catchUp(one)))),
    })
  } finally {
    await Promise.all(replicas.flat().map((one) => one.close()))
  }
}

/** Finds the Kafka of the environment, else that of the `weir up` on the data directory. */
export function findKafka({ environment }: CommandContext, dataDir: string): KafkaOptions {
  if (environment.WEIR_KAFKA_BROKERS) return kafkaFrom(environment, 'weir-audit')
  const [address, username, password] = (['kafka', 'kafkaUsername', 'kafkaPassword'] as const).map((name) =>
    readStateFile(dataDir, name),
  )
  if (address === undefined) throw nothingToAsk('Kafka', 'WEIR_KAFKA_BROKERS', dataDir)
  const isLocal = username !== undefined && password !== undefined
  const own = isLocal ? localKafka({ address, username, password }) : { WEIR_KAFKA_BROKERS: address }
  return kafkaFrom({ ...environment, ...own }, 'weir-audit')
}

/** A server that runs answers within milliseconds; a person waits no longer than this for one that does not. */
const readyDeadlineMs = 3_000

const limiterVariables = redisVariables({ about: '', fallback: '' })

function readRedisConfig(environment: CommandContext['environment'], dataDir: string) {
  const config = readConfig(limiterVariables, environment)
  if (config.redisUrl.text !== '') return config
  const text = readStateFile(dataDir, 'redis')
  if (text === undefined) throw nothingToAsk('Redis', 'WEIR_REDIS_URL', dataDir)
  return { ...config, redisUrl: text }
}

/**
 * Runs `use` with the counts of limits in the Redis of the environment, else of the `weir up` on the data directory.
 */
export const withLimitAdmin = <T>(
  context: CommandContext,
  dataDir: string,
  use: (admin: LimitAdmin) => Promise<T>,
): Promise<T> => withLimiter(context, dataDir, (connection) => use(createLimitAdmin(serverFinder(connection))))

/** Runs `use` with a connection to the Redis that decides, which is closed afterwards. */
async function withLimiter<T>(
  context: CommandContext,
  dataDir: string,
  use: (connection: ReturnType<typeof connectLimiter>) => Promise<T>,
): Promise<T> {
  const config = readRedisConfig(context.environment, dataDir)
  let last = `no response within ${readyDeadlineMs / 1_000} s`
  const connection = connectLimiter(config.redisUrl, {
    tls: config,
    use: 'console',
    onError: (error) => {
      last = error.message || String(error)
    },
  })
  try {
    const isReady = () => connection.status === 'ready'
    if ((await waitUntil(isReady, { deadlineMs: readyDeadlineMs })) !== true) throw redisUnavailable(last)
    return await use(connection)
  } catch (error) {
    if (error instanceof WeirError || !isRedisFault(error)) throw error
    throw redisUnavailable(error.message, error)
  } finally {
    connection.disconnect()
  }
}

/** A master that runs is connected within milliseconds; a question to one that does not run fails, and names it. */
const connectedMs = 3_000

/** Runs `use` with the servers of the Redis that decides, of a Cluster all masters. */
export const withQuotaServers = <T>(
  context: CommandContext,
  dataDir: string,
  use: (servers: QuotaServers) => Promise<T>,
): Promise<T> =>
  withLimiter(context, dataDir, async (connection) => {
    const all = () => mastersOf(connection)
    await waitUntil(() => all().every(({ status }) => status === 'ready'), { deadlineMs: connectedMs })
    return use({ serverOf: serverFinder(connection), all })
  })
