import type { ChainableCommander, Redis } from 'ioredis'
import type { ClaimStore, FoundClaim } from './ports.ts'

/** Stores claims in Redis: `pending` with an expiry if the key is free, `done` instead once the alert is published. */
export function createClaimStore(redis: Redis): ClaimStore {
  return {
    async claim(claims) {
      const pipeline = redis.pipeline()
      for (const { key, lifetimeMs, occurrenceId } of claims) {
        pipeline.set(key, occurrenceId === '' ? 'pending' : `pending ${occurrenceId}`, 'PX', lifetimeMs, 'NX')
      }
      // The value now: ours if the SET succeeded, else that of the first claimant.
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

/** A claim that expired between both commands is acquired at the next attempt. */
function foundClaim(taken: unknown, stands: unknown): FoundClaim {
  const [state = '', occurrenceId = ''] = String(stands).split(' ')
  if (taken === 'OK') return { state: 'acquired', occurrenceId }
  return { state: state === 'done' ? 'done' : 'pending', occurrenceId }
}

/** Returns the replies of a pipeline. Throws the first error; the caller repeats its whole step. */
async function run(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = await pipeline.exec()
  return (results ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  })
}
