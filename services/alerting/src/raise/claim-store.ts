import type { ChainableCommander, Redis } from 'ioredis'
import type { ClaimStore, FoundClaim } from './ports.ts'

/** Claims in Redis: `pending` with an expiry where there is nothing, `done` in its place when the alert is out. */
export function createClaimStore(redis: Redis): ClaimStore {
  return {
    async claim(claims) {
      const pipeline = redis.pipeline()
      for (const { key, lifetimeMs, stamp } of claims) {
        pipeline.set(key, stamp === '' ? 'pending' : `pending ${stamp}`, 'PX', lifetimeMs, 'NX')
      }
      // What stands there now: ours if the SET took, else what the first claimant left.
      for (const { key } of claims) pipeline.get(key)
      const answers = await run(pipeline)
      return claims.map((_, at) => foundClaim(answers[at], answers[claims.length + at]))
    },
    async finish(claims) {
      const pipeline = redis.pipeline()
      // Not KEEPTTL: a Redis that forgot the claim meanwhile would keep this for good.
      for (const { key, lifetimeMs } of claims) pipeline.set(key, 'done', 'PX', lifetimeMs)
      await run(pipeline)
    },
  }
}

/** A claim that has expired since the first of both was asked is taken at the next attempt. */
function foundClaim(taken: unknown, stands: unknown): FoundClaim {
  const [state = '', stamp = ''] = String(stands).split(' ')
  if (taken === 'OK') return { state: 'acquired', stamp }
  return { state: state === 'done' ? 'done' : 'pending', stamp }
}

/** The replies of a pipeline; the first error in it is thrown, and the caller repeats its whole step. */
async function run(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = await pipeline.exec()
  return (results ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  })
}
