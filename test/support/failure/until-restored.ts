import { connectRedis } from '@weir/redis/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Stack } from './stack.ts'

/** Restoring goes on for half a minute after a Redis is new; longer where many start at once. */
const restoredDeadlineMs = 90_000

/**
 * Waits until the console no longer raises the counts of a Redis that is new, which to it is one that lost its counts:
 * meanwhile they become ClickHouse's sums, which do not know of corrections that a killed process had still to write
 * (docs/decisions/0008).
 */
export async function untilRestored({ addresses }: Stack): Promise<void> {
  const redis = connectRedis(addresses.redis, { role: 'claims', onError: () => undefined })
  const isRestored = async () =>
    (await redis.get('weir:1:{_here-0}').catch(() => 'restoring'))?.startsWith('restoring') === false
  const restored = await waitUntil(isRestored, { deadlineMs: restoredDeadlineMs, everyMs: 500 })
  redis.disconnect()
  if (restored !== true) throw new Error('the console has not restored the counts of Redis')
}
