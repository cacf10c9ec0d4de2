import RedisStore from '@fastify/rate-limit/store/RedisStore.js'
import { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { bothWays, type Contestant, refuseToCount, sizeMax, windowMs } from './contestant.ts'
import { UpstashClient } from './upstash-client.ts'

type Decide = (subject: string) => Promise<unknown>

/** These libraries know no batches: a caller with many requests asks for each. */
const each =
  (decide: Decide): Contestant['decide'] =>
  async (subjects) => {
    await Promise.all(subjects.map(decide))
  }

export const unionLabel = 'rate-limiter-flexible Union of 3'
export const pipelinedUnionLabel = `${unionLabel}, auto-pipelined`

function union(storeClient: Redis, prefix: string): Decide {
  const limiters = ['minute', 'hour', 'day'].map(
    (name, index) =>
      new RateLimiterRedis({
        storeClient,
        keyPrefix: `${prefix}-${name}`,
        points: sizeMax,
        duration: windowMs / 1_000 + index * 60,
      }),
  )
  const all = new RateLimiterUnion(...limiters)
  // A refusal rejects.
  return (subject) => all.consume(subject)
}

/** Set up as its documentation shows it; the third with ioredis' auto-pipelining, which is off by default. */
function rateLimiterFlexible(redis: Redis, pipelined: Redis): Contestant[] {
  const single = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: 'rlf',
    points: sizeMax,
    duration: windowMs / 1_000,
  })
  return [
    ...bothWays(
      { label: 'rate-limiter-flexible', limits: 1, keys: 'rlf:*' },
      each((subject) => single.consume(subject)),
    ),
    ...bothWays({ label: unionLabel, limits: 3, keys: 'rlfu-*:*' }, each(union(redis, 'rlfu'))),
    ...bothWays({ label: pipelinedUnionLabel, limits: 3, keys: 'rlfp-*:*' }, each(union(pipelined, 'rlfp'))),
  ]
}

/** Its defaults; they include a timer for each call, as Weir has one for each call to Redis. */
function upstash(redis: Redis): Contestant[] {
  const client = new UpstashClient(redis)
  const hour = `${windowMs} ms` as const
  const limiters = {
    'fixed window': Ratelimit.fixedWindow(sizeMax, hour),
    'sliding window': Ratelimit.slidingWindow(sizeMax, hour),
    'token bucket': Ratelimit.tokenBucket(sizeMax, hour, sizeMax),
  }
  return Object.entries(limiters).flatMap(([name, limiter]) => {
    const label = `@upstash/ratelimit ${name}`
    const prefix = `upstash-${name.replace(' ', '-')}`
    const ratelimit = new Ratelimit({ redis: client, limiter, prefix })
    const decide = async (subject: string) => {
      const { success, reason } = await ratelimit.limit(subject)
      if (!success || reason !== undefined) refuseToCount(label, reason ?? 'refused')
    }
    return bothWays({ label, limits: 1, keys: `${prefix}:*` }, each(decide))
  })
}

function fastifyRateLimit(redis: Redis): Contestant[] {
  const label = '@fastify/rate-limit store'
  const store = new RedisStore(false, false, redis, 'fastify-rate-limit-')
  const decide = (subject: string) =>
    new Promise<void>((resolve, reject) => {
      store.incr(subject, (error) => (error === null ? resolve() : reject(error)), windowMs, sizeMax)
    })
  return bothWays({ label, limits: 1, keys: 'fastify-rate-limit-*' }, each(decide))
}

/** Limiters that are in wide use, as of the versions in the lock file. `pipelined` has auto-pipelining on. */
export const libraryContestants = (redis: Redis, pipelined: Redis): Contestant[] => [
  ...rateLimiterFlexible(redis, pipelined),
  ...upstash(redis),
  ...fastifyRateLimit(redis),
]
