import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** Enough for the engine to have compiled the path to Redis; some tens of milliseconds. */
const rounds = 50
const requestsPerRound = 8

/** Redis answers within milliseconds of a start, or it is down: then nothing is compiled, and the start goes on. */
const waitMsMax = 2_000

/**
 * Peeks at limits of a subject that does not exist until the path is compiled, so that the first requests of a fresh
 * process meet their deadline. A peek writes nothing. It goes on only while `isUp` says that Redis can be asked, else
 * each peek would be a decision without Redis.
 */
export async function warmUp(policy: Policy, store: LimitStore, isUp: () => boolean): Promise<void> {
  const scope = { subject: '_warm-up', keyId: '', ip: '', route: '*', method: 'GET' }
  const limits = [...policy.limits.values()].slice(0, 2)
  const peek = () => store.decide({ scope, cost: 1, peek: true, limits, timeZone: 'UTC', anchor: 1 })
  const endsAt = performance.now() + waitMsMax
  for (let round = 0; round < rounds; round += 1) {
    if (!isUp() && !(await waitUntil(isUp, { deadlineMs: endsAt - performance.now(), everyMs: 5 }))) return
    await Promise.all(Array.from({ length: requestsPerRound }, peek))
  }
}
