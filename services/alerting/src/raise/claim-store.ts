import type { ChainableCommander, Redis } from 'ioredis'

/** The state in which a claim was found. */
export interface FoundClaim {
  /** `pending`: a process claimed it; whether its alert was published is not known. */
  readonly state: 'acquired' | 'pending' | 'done'
  /** The occurrence that the first claimant of a pending claim stored. */
  readonly occurrenceId: string
}

/** A claim that a process makes before it raises an alert. */
export interface ClaimedKey {
  readonly key: string
  /** The claim expires this long after its last change. */
  readonly lifetimeMs: number
  /** Stored with the claim for the process that finds it pending; without blanks. */
  readonly occurrenceId: string
}

/** Decides which process raises an alert; all processes share its answer. */
export type ClaimStore = ReturnType<typeof createClaimStore>

/** Stores claims in Redis: `pending` with an expiry if the key is free, `done` instead once the alert is published. */
export function createClaimStore(redis: Redis) {
  return {
    /** Acquires every free claim, in one round trip. Returns the states in the order of the keys. */
    async claim(claims: readonly ClaimedKey[]): Promise<FoundClaim[]> {
      const pipeline = redis.pipeline()
      for (const { key, lifetimeMs, occurrenceId } of claims) {
        pipeline.set(key, occurrenceId === '' ? 'pending' : `pending ${occurrenceId}`, 'PX', lifetimeMs, 'NX')
      }
      // The value now: ours if the SET succeeded, else that of the first claimant.
      for (const { key } of claims) pipeline.get(key)
      const answers = await run(pipeline)
      return claims.map((_, at) => foundClaim(answers[at], answers[claims.length + at]))
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
