import type { Redis } from 'ioredis'

const turnKey = 'weir:1:watches:turn'
const lookedKey = 'weir:1:watches:looked'
/** Looks are a minute apart; one that dies leaves its turn to the next within this time. */
const turnMs = 50_000
/** Beyond the time for which windows are looked at later. */
const lookedKeptMs = 3_600_000

/** Which of many processes looks, and how far all of them have come. */
export interface LookTurns {
  /** Until when each watch was looked at, if it is this process's turn. */
  take(): Promise<ReadonlyMap<string, number> | undefined>
  /** A watch was looked at until then, and what it found is raised. */
  looked(watch: string, endMs: number): Promise<void>
}

/** A process that dies in the middle has looked at nothing: the next one finds the same again, and raises it under the same id. */
export function createLookTurns(redis: Redis): LookTurns {
  return {
    async take() {
      if ((await redis.set(turnKey, '1', 'PX', turnMs, 'NX')) !== 'OK') return undefined
      const looked = await redis.hgetall(lookedKey)
      return new Map(Object.entries(looked).map(([watch, endMs]) => [watch, Number(endMs)]))
    },
    async looked(watch, endMs) {
      await redis.multi().hset(lookedKey, watch, endMs).pexpire(lookedKey, lookedKeptMs).exec()
    },
  }
}
