import type { RedisHealth } from '@weir/redis/redis-health.ts'
import type { ReadinessCheck } from '@weir/runtime/ops-server.ts'

/** A connection takes milliseconds. A process that starts while Redis is down has to serve all the same. */
export const connectPatienceMs = 10_000

/**
 * Returns what /readyz says of Redis. Every process has the same one, and each limit an `onUnavailable`: a Redis that
 * is away is a warning, because a balancer would take all processes out for it. Only a process that has just started is
 * not ready before it was reached, until `patientUntilMs` on the monotonic clock.
 */
export function redisReadiness(checkHealth: () => Promise<RedisHealth>, patientUntilMs: number): ReadinessCheck {
  let wasReached = false
  return async () => {
    const { problem, warning } = await checkHealth()
    wasReached ||= problem === undefined
    if (problem === undefined) return warning === undefined ? undefined : { warning }
    if (!wasReached && performance.now() < patientUntilMs) return problem
    return { warning: `${problem}; each limit's onUnavailable applies` }
  }
}
