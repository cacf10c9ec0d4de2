import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { type RedisServers, serverFinder } from '@weir/redis/limit-connection.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { repeatUntilStopped } from '../repeat.ts'
import type { AlertCandidate } from '../types.ts'

/** Windows are whole minutes, and metering is a second or two behind. */
const everyMs = 60_000
/** Pause while Redis or ClickHouse is unavailable, as it may be at the start. */
const retryMs = 5_000
/** A stop waits up to this long for a round in progress; the next process finds the same, under the same ids. */
const stopMs = 2_000

/** Rounds are a minute apart; the lock of a process that dies expires before the next one. */
const lockMs = 50_000

/** Returns what takes the lock of a round: true for one process of all, also when it tries its round again. */
export function createRoundLock(servers: RedisServers, key: string): () => Promise<boolean> {
  const own = randomUUID()
  const serverOf = serverFinder(servers)
  return async () => {
    const redis = serverOf(key)
    return (await redis.set(key, own, 'PX', lockMs, 'NX')) === 'OK' || (await redis.get(key)) === own
  }
}

/** What a watch asks, and how it raises what it has found. */
export interface WatchOptions<C extends AlertCandidate> {
  readonly clickhouse: ClickHouseClient
  readonly redis: RedisServers
  readonly policyInForce: () => Policy
  readonly raise: (found: readonly C[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Rounds that go on until a process stops. */
export interface Rounds {
  /** Returns what keeps the rounds from being whole; undefined while nothing does. */
  readonly problem: () => string | undefined
  /** Resolves after `stopping` aborted and the round ended, or was given up. */
  readonly stopped: Promise<void>
}

/**
 * Goes a round every minute. A round returns what it could not do, if anything; one that rejects is tried again soon.
 * `what` is not done then, as in *watches not evaluated*.
 */
export function startRounds(
  round: () => Promise<string | undefined>,
  { what, stopping, log }: { readonly what: string; readonly stopping: AbortSignal; readonly log: Logger },
): Rounds {
  let problem: string | undefined
  const going = repeatUntilStopped(async () => {
    try {
      problem = await round()
      return everyMs
    } catch (error) {
      log.warn({ err: error }, `${what}, trying again`)
      problem = `${what}: the last round failed; see the log`
      return retryMs
    }
  }, stopping)
  const givenUp = new Promise<void>((resolve) => {
    stopping.addEventListener('abort', () => void pause(stopMs, undefined, { ref: false }).then(() => resolve()))
  })
  return { problem: () => problem, stopped: Promise.race([going, givenUp]) }
}
