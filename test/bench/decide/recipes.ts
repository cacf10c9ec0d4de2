import { createHash, randomUUID } from 'node:crypto'
import type { ChainableCommander, Redis } from 'ioredis'
import { bothWays, type Contestant, logSizeMax, refuseToCount, sizeMax, windowMs } from './contestant.ts'

/**
 * What is written in every introduction to rate limiting with Redis: one counter a window, charged before it is looked
 * at.
 */
const plainCounter = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return count <= tonumber(ARGV[2]) and 1 or 0`

/**
 * The usual exact log: a sorted set of unique members, by time. ARGV: window in microseconds and milliseconds, size,
 * member.
 */
const sortedSetLog = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`

interface Recipe {
  readonly label: string
  readonly lua: string
  keyOf(subject: string): string
  argumentsOf(): (string | number)[]
}

/** Asks for all subjects at once in one pipeline of EVALSHA. */
async function openRecipe(redis: Redis, { label, lua, keyOf, argumentsOf }: Recipe): Promise<Contestant[]> {
  const sha1 = createHash('sha1').update(lua).digest('hex')
  await redis.script('LOAD', lua)
  const admitted = (answer: unknown) => {
    if (answer !== 1) refuseToCount(label, String(answer))
  }
  return bothWays({ label, limits: 1, keys: keyOf('*') }, async (subjects) => {
    const [only = ''] = subjects
    if (subjects.length === 1) return admitted(await redis.evalsha(sha1, 1, keyOf(only), ...argumentsOf()))
    const pipeline = subjects.reduce<ChainableCommander>(
      (calls, subject) => calls.evalsha(sha1, 1, keyOf(subject), ...argumentsOf()),
      redis.pipeline(),
    )
    for (const [error, answer] of (await pipeline.exec()) ?? []) admitted(error ?? answer)
  })
}

export const plainLabel = 'INCR + PEXPIRE in Lua'
export const sortedSetLabel = 'sorted-set log in Lua'

/** Scripts as their public descriptions have them, with the shortest keys that could do. */
export async function recipeContestants(redis: Redis): Promise<Contestant[]> {
  return [
    ...(await openRecipe(redis, {
      label: plainLabel,
      lua: plainCounter,
      keyOf: (subject) => `plain:${subject}`,
      argumentsOf: () => [windowMs, sizeMax],
    })),
    ...(await openSortedSet(redis, 'log', logSizeMax)),
  ]
}

/** Members are UUIDs, as most descriptions have it: two of the same microsecond must both count. */
const openSortedSet = (redis: Redis, prefix: string, size: number): Promise<Contestant[]> =>
  openRecipe(redis, {
    label: sortedSetLabel,
    lua: sortedSetLog,
    keyOf: (subject) => `${prefix}:${subject}`,
    argumentsOf: () => [windowMs * 1_000, windowMs, size, randomUUID()],
  })
