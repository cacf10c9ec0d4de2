import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { algorithms } from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const subjectsCount = 20_000
/** Requests on their way to Redis at a time: all at once would be beyond their deadline. */
const togetherCount = 500

/** Of keys, values, expiries and their tables: buffers of clients and of the append-only file are left out. */
async function dataBytes(redis: Redis): Promise<number> {
  const info = await redis.info('memory')
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer')
}

test('A limit of a subject, with its expiry and its place in the tables, takes at most the memory that docs/redis.md says', async () => {
  const server = await forTest(startServer(redisServer))
  const redis = await openLimiterRedis(server.address)
  const common = { redis, clock: systemClock, periodBoundaries: createBoundaryCache() }
  const store = await forTest(new RedisLimitStore({ ...common, deadlineMs: 20_000 }))
  const version = /^(?:valkey|redis)_version:.*$/gm
  process.stdout.write(`  ${[...(await redis.info('server')).matchAll(version)].join(', ')}\n`)
  const found: Record<string, number> = {}
  for (const algorithm of algorithms) {
    await redis.flushall('SYNC') // a Valkey would free the memory later
    const before = await dataBytes(redis)
    const limit = buildLimit({ name: 'minute', algorithm, size: 2, span: { kind: 'window', ms: 3_600_000 } })
    for (let at = 0; at < subjectsCount; at += togetherCount) {
      const requests = Array.from({ length: togetherCount }, (_, more) =>
        buildLimitRequest({ limits: [limit], scope: buildScope({ subject: `customer-${10_000 + at + more}` }) }),
      )
      const decisions = await Promise.all(requests.map((request) => store.decide(request)))
      expect(decisions.every(({ charged }) => charged === 'yes')).toBe(true)
    }
    expect(await redis.dbsize()).toBe(subjectsCount)
    found[algorithm] = Math.round(((await dataBytes(redis)) - before) / subjectsCount)
  }
  process.stdout.write(`  bytes a subject and limit: ${JSON.stringify(found)}\n`)
  for (const bytes of Object.values(found)) expect(bytes).toBeLessThanOrEqual(250)
}, 120_000)
