import type { connectLimiter } from '@weir/redis/connect.ts'
import { changeLimits, createLimitAdmin } from '@weir/redis/limit-admin.ts'
import { isRedisFault, redisUnavailable, serverFinder } from '@weir/redis/limit-connection.ts'
import type { ChangeCounts } from './ports.ts'

/** Resets and unblocks by this connection. */
export function createChangeCounts(connection: ReturnType<typeof connectLimiter>): ChangeCounts {
  const admin = createLimitAdmin(serverFinder(connection))
  return async (asked, question, change) => {
    try {
      return await changeLimits(admin, asked, question, change)
    } catch (error) {
      throw isRedisFault(error) ? redisUnavailable(error.message, error) : error
    }
  }
}
