import { WeirError } from '@weir/core/errors.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { createLimitAdmin, type LimitAdmin } from '@weir/redis/limit-admin.ts'
import { isRedisFault, redisUnavailable, serverFinder } from '@weir/redis/limit-connection.ts'
import { redisVariables } from '@weir/redis/redis-variables.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CommandContext } from '../command-context.ts'
import { nothingToAsk, readStateFile } from '../console/read-state-file.ts'

/** A server that runs answers within milliseconds; a person waits no longer than this for one that does not. */
const readyDeadlineMs = 3_000

const variables = redisVariables({ about: '', fallback: '', kinds: ['single', 'sentinel', 'cluster'] })

function readRedisConfig(environment: CommandContext['environment'], dataDir: string) {
  const config = readConfig(variables, environment)
  if (config.redisUrl.text !== '') return config
  const text = readStateFile(dataDir, 'redis')
  if (text === undefined) throw nothingToAsk('Redis', 'WEIR_REDIS_URL', dataDir)
  return { ...config, redisUrl: text }
}

/** Runs `use` with a connection to the Redis that decides, which is closed afterwards. */
export const withLimitAdmin = <T>(
  context: CommandContext,
  dataDir: string,
  use: (admin: LimitAdmin) => Promise<T>,
): Promise<T> => withLimiter(context, dataDir, (connection) => use(createLimitAdmin(serverFinder(connection))))

/** As `withLimitAdmin`, for what works with the connection itself. */
export async function withLimiter<T>(
  context: CommandContext,
  dataDir: string,
  use: (connection: ReturnType<typeof connectLimiter>) => Promise<T>,
): Promise<T> {
  const config = readRedisConfig(context.environment, dataDir)
  let last = `no answer within ${readyDeadlineMs / 1_000} s`
  const connection = connectLimiter(config.redisUrl, {
    tls: config,
    use: 'console',
    onError: (error) => {
      last = error.message || String(error)
    },
  })
  try {
    const isReady = () => context.signal.aborted || connection.status === 'ready'
    if ((await waitUntil(isReady, { deadlineMs: readyDeadlineMs })) !== true) throw redisUnavailable(last)
    return await use(connection)
  } catch (error) {
    if (error instanceof WeirError || !isRedisFault(error)) throw error
    throw redisUnavailable(error.message, error)
  } finally {
    connection.disconnect()
  }
}
