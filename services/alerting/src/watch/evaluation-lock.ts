import type { Redis } from 'ioredis'

const lockKey = 'weir:1:watches:turn'
const lookedKey = 'weir:1:watches:looked'
/** Evaluations are a minute apart; the lock of a process that dies expires before the next one. */
const lockMs = 50_000
/** Longer than windows are evaluated late. */
const lookedKeptMs = 3_600_000

/** Decides which process evaluates the watches, and stores how far each was evaluated. */
export interface EvaluationLock {
  /** Returns until when each watch was evaluated if this process gets the lock; else undefined. */
  take(): Promise<ReadonlyMap<string, number> | undefined>
  /** Stores that a watch was evaluated until `endMs` and its alerts are raised. */
  looked(watch: string, endMs: number): Promise<void>
}

/**
 * Opens the lock in Redis. If its holder dies, the next process evaluates the same windows, and raises the same alerts
 * under the same ids.
 */
export function createEvaluationLock(redis: Redis): EvaluationLock {
  return {
    async take() {
      if ((await redis.set(lockKey, '1', 'PX', lockMs, 'NX')) !== 'OK') return undefined
      const looked = await redis.hgetall(lookedKey)
      return new Map(Object.entries(looked).map(([watch, endMs]) => [watch, Number(endMs)]))
    },
    async looked(watch, endMs) {
      await redis.multi().hset(lookedKey, watch, endMs).pexpire(lookedKey, lookedKeptMs).exec()
    },
  }
}
