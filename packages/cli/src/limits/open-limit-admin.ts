import { readFileSync } from 'node:fs'
import { WeirError } from '@weir/core/errors.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { createLimitAdmin, type LimitAdmin } from '@weir/redis/limit-admin.ts'
import { isRedisFault, redisUnavailable, serverFinder } from '@weir/redis/limit-connection.ts'
import { parseRedisUrl } from '@weir/redis/redis-url.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { readStateFile } from '../console/read-state-file.ts'
import type { Surroundings } from '../project.ts'

/** A server that runs answers within milliseconds; a person waits no longer than this for one that does not. */
const readyDeadlineMs = 3_000

function findRedisUrl(environment: Surroundings['environment'], dataDir: string): string {
  const url = environment.WEIR_REDIS_URL || readStateFile(dataDir, 'redis')
  if (url === undefined) {
    const what = `No Redis to ask: WEIR_REDIS_URL is not set, and no weir up has run on ${dataDir}`
    throw new WeirError('CONFIG_INVALID', `${what}. Set it, start one, or name its directory with --data DIR.`)
  }
  const parsed = parseRedisUrl(url)
  if ('problem' in parsed) throw new WeirError('CONFIG_INVALID', `WEIR_REDIS_URL ${parsed.problem}`)
  return url
}

/** The certificates that may have signed Redis's, where Node does not trust them by itself. */
function readCertificates(file: string | undefined): string | undefined {
  if (!file) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WeirError('CONFIG_INVALID', `WEIR_REDIS_TLS_CA names ${file}, which cannot be read.`, error)
  }
}

/** Runs `use` with a connection to the Redis that decides, which is closed afterwards. */
export const withLimitAdmin = <T>(
  around: Surroundings,
  dataDir: string,
  use: (admin: LimitAdmin) => Promise<T>,
): Promise<T> => withLimiter(around, dataDir, (connection) => use(createLimitAdmin(serverFinder(connection))))

/** As `withLimitAdmin`, for what works with the connection itself. */
export async function withLimiter<T>(
  around: Surroundings,
  dataDir: string,
  use: (connection: ReturnType<typeof connectLimiter>) => Promise<T>,
): Promise<T> {
  const url = findRedisUrl(around.environment, dataDir)
  let last = `no answer within ${readyDeadlineMs / 1_000} s`
  const connection = connectLimiter(url, {
    ca: readCertificates(around.environment.WEIR_REDIS_TLS_CA),
    onError: (error) => {
      last = error.message || String(error)
    },
  })
  try {
    const isReady = () => around.signal.aborted || connection.status === 'ready'
    if ((await waitUntil(isReady, { deadlineMs: readyDeadlineMs })) !== true) throw redisUnavailable(last)
    return await use(connection)
  } catch (error) {
    if (error instanceof WeirError || !isRedisFault(error)) throw error
    throw redisUnavailable(error.message, error)
  } finally {
    connection.disconnect()
  }
}
