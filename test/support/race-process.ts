import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'

/** What one process of a race is told as its only argument. */
export interface RaceTask {
  readonly redisUrl: string
  readonly connections: number
  readonly request: LimitRequest
  /**
   * So many requests per connection, all at one instant of this time; or one after the other for this time, by Redis's
   * clock.
   */
  readonly pace:
    | { readonly kind: 'instant'; readonly nowMs: number; readonly requests: number }
    | { readonly kind: 'real'; readonly durationMs: number }
}

/**
 * What it prints, in the order in which the connection was answered: Redis's time, the reason, and the first limit's
 * units used.
 */
export type RaceDecision = readonly [atUs: number, reason: string, used: number]

const task: RaceTask = JSON.parse(process.argv[2] ?? '{}')

async function decideAll(store: LimitStore): Promise<readonly Decision[]> {
  const { pace, request } = task
  if (pace.kind === 'instant') {
    return Promise.all(Array.from({ length: pace.requests }, () => store.decide(request)))
  }
  const decisions: Decision[] = []
  const end = performance.now() + pace.durationMs
  while (performance.now() < end) {
    decisions.push(...(await Promise.all([store.decide(request), store.decide(request)])))
  }
  return decisions
}

const { pace } = task
const decisions = await Promise.all(
  Array.from({ length: task.connections }, async () => {
    const redis = connectRedis(task.redisUrl, { role: 'limiter', onError: () => {} })
    await new Promise((resolve) => redis.once('ready', resolve))
    const store = new RedisLimitStore({
      redis,
      clock: systemClock,
      periodBoundaries: createBoundaryCache(),
      deadlineMs: 20_000,
      ...(pace.kind === 'instant' ? { now: () => pace.nowMs } : {}),
    })
    const decided = await decideAll(store)
    store.close()
    redis.disconnect()
    return decided
  }),
)
const result = decisions.flat().map(({ atUs, reason, limits }): RaceDecision => [atUs, reason, limits[0]?.used ?? -1])
process.stdout.write(JSON.stringify(result))
