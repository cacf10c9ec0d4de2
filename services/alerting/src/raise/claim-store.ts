import { blockCountKey } from '@weir/core/alerts/claim.ts'
import { type RedisServers, serverFinder } from '@weir/redis/limit-connection.ts'
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
  /** The last of them that was found. */
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

/**
 * Stores claims in Redis: `pending` with an expiry if the key is free, `done` instead once the alert is published. On a
 * Cluster each master gets its part of a batch, all concurrently; the whole batch fails if one of them does.
 */
export function createClaimStore(redis: RedisServers) {
  const serverOf = serverFinder(redis)
  return {
    /** Acquires every free claim, in one round trip. Returns the states in the order of the keys. */
    async claim(claims: readonly ClaimedKey[]): Promise<FoundClaim[]> {
      const replies = await runEach(serverOf, claims, (pipeline, { key, lifetimeMs, occurrenceId, counted }) => {
        const value = occurrenceId === '' ? 'pending' : `pending ${occurrenceId}`
        // The value then: ours if the SET succeeded, else that of the first claimant.
        if (counted === undefined) return pipeline.set(key, value, 'PX', lifetimeMs, 'NX').get(key)
        const hour = Math.floor(counted.nowMs / hourMs) * hourMs
        const counter = blockCountKey(counted.subject, counted.limit, hour)
        const bounds = [lifetimeMs, countedKeptMs, blockAlertsMax, `counted ${hour}`]
        return pipeline.eval(claimCounted, 2, key, counter, value, ...bounds)
      })
      return claims.map(({ counted }, at) => {
        const own = replies[at] ?? []
        const [taken, stands] = counted === undefined ? own : [own[0]].flat()
        return foundClaim(taken, stands)
      })
    },
    /** Keeps which subjects and limits, by any text that names both, have counted blocks in an hour. */
    async keepFurther(hourStartMs: number, further: ReadonlyMap<string, Further>): Promise<void> {
      const key = furtherKey(hourStartMs)
      await runEach(serverOf, [{ key }], (pipeline) => {
        for (const [field, one] of further) pipeline.hset(key, field, JSON.stringify(one))
        return pipeline.pexpire(key, countedKeptMs)
      })
    },
    /** Returns what was counted in an hour, each with how many blocks had no alert of their own. */
    async readFurther(hourStartMs: number): Promise<(Further & { readonly more: number })[]> {
      const kept = await serverOf(furtherKey(hourStartMs)).hgetall(furtherKey(hourStartMs))
      const all = Object.values(kept).map((text): Further => JSON.parse(text))
      const counters = all.map(({ subject, limit }) => ({ key: blockCountKey(subject, limit, hourStartMs) }))
      const counts = await runEach(serverOf, counters, (pipeline, { key }) => pipeline.get(key))
      return all.map((one, at) => ({ ...one, more: Math.max(1, Number(counts[at]?.[0] ?? 0) - blockAlertsMax) }))
    },
    /** Marks claims as done, because their alerts are published or superseded; they stay done until they expire. */
    async finish(claims: readonly Omit<ClaimedKey, 'occurrenceId'>[]): Promise<void> {
      // Not KEEPTTL: a Redis that forgot the claim meanwhile would keep this for good.
      await runEach(serverOf, claims, (pipeline, { key, lifetimeMs }) => pipeline.set(key, 'done', 'PX', lifetimeMs))
    },
  }
}

/** A claim that expired between both commands is acquired at the next attempt. */
function foundClaim(taken: unknown, stands: unknown): FoundClaim {
  const [state = '', occurrenceId = ''] = String(stands).split(' ')
  if (taken === 'OK') return { state: 'acquired', occurrenceId }
  return { state: state === 'done' || state === 'counted' ? state : 'pending', occurrenceId }
}

/**
 * Runs the commands of all items, in one pipeline for each server that holds some of their keys. Returns each item's
 * replies. Throws the first error once every server has answered; the caller repeats its whole step.
 */
async function runEach<Item extends { readonly key: string }>(
  serverOf: (key: string) => Redis,
  items: readonly Item[],
  add: (pipeline: ChainableCommander, item: Item) => unknown,
): Promise<unknown[][]> {
  const pipelines = new Map<Redis, ChainableCommander>()
  const ranges = items.map((item) => {
    const server = serverOf(item.key)
    const pipeline = pipelines.get(server) ?? server.pipeline()
    pipelines.set(server, pipeline)
    const from = pipeline.length
    add(pipeline, item)
    return { pipeline, from, until: pipeline.length }
  })
  const all = [...pipelines.values()]
  const answers = await Promise.all(all.map((pipeline) => pipeline.exec()))
  const replies = new Map(all.map((pipeline, at) => [pipeline, (answers[at] ?? []).map(replyOf)]))
  return ranges.map(({ pipeline, from, until }) => replies.get(pipeline)?.slice(from, until) ?? [])
}

function replyOf([error, reply]: [Error | null, unknown]): unknown {
  if (error !== null) throw error
  return reply
}
