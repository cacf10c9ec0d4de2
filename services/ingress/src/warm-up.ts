import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { Policy } from '@weir/core/policy/policy.ts'

/** Enough for the engine to have compiled the path to Redis; some tens of milliseconds. */
const rounds = 50
const requestsPerRound = 8

/**
 * Looks at limits that nobody uses until the path is compiled, so that the first requests of a fresh process meet their
 * deadline. A look writes nothing.
 */
export async function warmUp(policy: Policy, store: LimitStore): Promise<void> {
  const scope = { subject: '_warm-up', keyId: '', ip: '', route: '*', method: 'GET' }
  const limits = [...policy.limits.values()].slice(0, 2)
  const look = () => store.decide({ scope, cost: 1, peek: true, limits, timeZone: 'UTC', anchor: 1 })
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(Array.from({ length: requestsPerRound }, look))
  }
}
