import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Stack } from './stack.ts'
import { openStackRedis } from './stack-redis.ts'

/** Restoring goes on for half a minute after a Redis is new; longer where many start at once. */
const restoredDeadlineMs = 90_000

/** Every master has the first of these whose slot it holds (packages/redis/src/data-loss-detector.ts). */
const canaries = Array.from({ length: 32 }, (_, at) => `weir:1:{_here-${at}}`)

/**
 * Waits until the console no longer raises the counts of a Redis that is new, which to it is one that lost its counts:
 * meanwhile they become ClickHouse's sums, which do not know of corrections that a killed process had still to write
 * (docs/decisions/0008).
 */
export async function untilRestored(stack: Stack): Promise<void> {
  const redis = openStackRedis(stack)
  const isRestored = async () => {
    const values = await Promise.all(canaries.map((key) => redis.get(key).catch(() => 'restoring')))
    const found = values.filter((value) => value !== null)
    return found.length > 0 && !found.some((value) => value.startsWith('restoring'))
  }
  const restored = await waitUntil(isRestored, { deadlineMs: restoredDeadlineMs, everyMs: 500 })
  redis.disconnect()
  if (restored !== true) throw new Error('the console has not restored the counts of Redis')
}
