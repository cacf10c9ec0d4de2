import { blockCountKey } from '@weir/core/alerts/claim.ts'
import type { ChainableCommander, Redis } from 'ioredis'

/** The state in which a claim was found. */
export interface FoundClaim {
  /**
   * `pending`: a process claimed it; whether its alert was published is not known. `counted`: it has no alert of its
   * own, because there were too many in its hour.
   */
  readonly state: 'acquired' | 'pending' | 'done' | 'counted'
  /** What the first claimant of a pending claim stored; of a counted one, the start of its hour in milliseconds. */
  readonly occurrenceId: string
}

/** A claim that a process makes before it raises an alert. */
export interface ClaimedKey {
  readonly key: string
  /** The claim expires this long after its last change. */
  readonly lifetimeMs: number
  /** Stored with the claim for the process that finds it pending; without blanks. */
  readonly occurrenceId: string
  /** Of a block for one of many values: whose blocks by which limit are counted, and when. */
  readonly counted?: { readonly subject: string; readonly limit: string; readonly nowMs: number } | undefined
}

/** Blocks of one subject by one limit that had no alert of their own. */
export interface Further {
  readonly subject: string
  readonly limit: string
  readonly size: number
  readonly decisionId: string
}

/** Blocks are counted by the hour, by the clock of alerting. */
export const hourMs = 3_600_000
/** What an hour counted can be read for at least two hours after its end. */
export const countedKeptMs = 4 * hourMs
/**
 * Alerts of blocks for single values, of one subject by one limit in an hour. A flood from a hundred addresses is one
 * message to a person, not a thousand.
 */
export const blockAlertsMax = 100

/**
 * Acquires a claim and counts it in one step, so that a block is counted once however often it is read. One beyond the
 * bound keeps the hour in which it was counted.
 */
const claimCounted = `
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  local count = tonumber(redis.call('GET', KEYS[2]) or '0') + 1
  redis.call('SET', KEYS[2], count, 'PX', ARGV[3])
  if count <= tonumber(ARGV[4]) then return {'OK', ARGV[1]} end
  redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[2])
end
return {'', redis.call('GET', KEYS[1])}`

/** The subjects and limits with counted blocks of an hour, for the process that raises how many there were. */
const furtherKey = (hourStartMs: number) => `weir:1:watches:blocks:${hourStartMs}`

/** Decides which process raises an alert; all processes share its answer. */
export type ClaimStore = ReturnType<typeof createClaimStore>

/** Stores claims in Redis: `pending` with an expiry if the key is free, `done` instead once the alert is published. */
export function createClaimStore(redis: Redis) {
  return {
    /** Acquires every free claim, in one round trip. Returns the states in the order of the keys. */
    async claim(claims: readonly ClaimedKey[]): Promise<FoundClaim[]> {
      const pipeline = redis.pipeline()
      for (const { key, lifetimeMs, occurrenceId, counted } of claims) {
        const value = occurrenceId === '' ? 'pending' : `pending ${occurrenceId}`
        if (counted === undefined) pipeline.set(key, value, 'PX', lifetimeMs, 'NX')
        else {
          const hour = Math.floor(counted.nowMs / hourMs) * hourMs
          const counter = blockCountKey(counted.subject, counted.limit, hour)
          const bounds = [lifetimeMs, countedKeptMs, blockAlertsMax, `counted ${hour}`]
          pipeline.eval(claimCounted, 2, key, counter, value, ...bounds)
        }
      }
      // The value now: ours if the SET succeeded, else that of the first claimant.
      for (const { key, counted } of claims) if (counted === undefined) pipeline.get(key)
      const answers = await run(pipeline)
      let next = claims.length
      return claims.map(({ counted }, at) => {
        const answer = answers[at]
        if (counted === undefined) return foundClaim(answer, answers[next++])
        const [taken, stands] = Array.isArray(answer) ? answer : []
        return foundClaim(taken, stands)
      })
    },
    /** Keeps which subjects and limits, by any text that names both, have counted blocks in an hour. */
    async keepFurther(hourStartMs: number, further: ReadonlyMap<string, Further>): Promise<void> {
      const pipeline = redis.pipeline()
      for (const [field, one] of further) pipeline.hset(furtherKey(hourStartMs), field, JSON.stringify(one))
      pipeline.pexpire(furtherKey(hourStartMs), countedKeptMs)
      await run(pipeline)
    },
    /** Returns what was counted in an hour, each with how many blocks had no alert of their own. */
    async readFurther(hourStartMs: number): Promise<(Further & { readonly more: number })[]> {
      const kept = Object.values(await redis.hgetall(furtherKey(hourStartMs))).map((text): Further => JSON.parse(text))
      if (kept.length === 0) return []
      const pipeline = redis.pipeline()
      for (const { subject, limit } of kept) pipeline.get(blockCountKey(subject, limit, hourStartMs))
      const counts = await run(pipeline)
      return kept.map((one, at) => ({ ...one, more: Math.max(1, Number(counts[at] ?? 0) - blockAlertsMax) }))
    },
    /** Marks claims as done, because their alerts are published or superseded; they stay done until they expire. */
    async finish(claims: readonly Omit<ClaimedKey, 'occurrenceId'>[]): Promise<void> {
      const pipeline = redis.pipeline()
      // Not KEEPTTL: a Redis that forgot the claim meanwhile would keep this for good.
      for (const { key, lifetimeMs } of claims) pipeline.set(key, 'done', 'PX', lifetimeMs)
      await run(pipeline)
    },
  }
}

/** A claim that expired between both commands is acquired at the next attempt. */
function foundClaim(taken: unknown, stands: unknown): FoundClaim {
  const [state = '', occurrenceId = ''] = String(stands).split(' ')
  if (taken === 'OK') return { state: 'acquired', occurrenceId }
  return { state: state === 'done' || state === 'counted' ? state : 'pending', occurrenceId }
}

/** Returns the replies of a pipeline. Throws the first error; the caller repeats its whole step. */
async function run(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = await pipeline.exec()
  return (results ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  })
}
