import { connectRedis } from '@weir/redis/connect.ts'
import type { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'

/** A connection as the ingress has it, ready, closed when the test ends. */
export async function openLimiterRedis(url: string): Promise<Redis> {
  const redis = connectRedis(url, { role: 'limiter', onError: () => {} })
  onTestFinished(() => redis.disconnect())
  if (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve))
  return redis
}
