import type { AskedLimits } from './asked-limits.ts'
import { countKeys } from './keys.ts'
import type { LimitAdmin } from './limit-admin.ts'

/** How one limit stands now. */
export interface LimitNow {
  readonly name: string
  readonly size: number
  /** Null where it counts by more than is known. */
  readonly used: number | null
  readonly remaining: number | null
  /** Whether it would admit the request. */
  readonly admits: boolean | null
  /** The wait until it does; -1 where waiting does not help. */
  readonly retryMs: number
  /** The time until nothing of it is used, if no request comes; null as above. */
  readonly resetMs: number | null
  /** How long it blocks the caller from now on; 0 for not at all, null as above. */
  readonly blockedMs: number | null
}

/** Looks at the count that a request of this cost would meet on each limit. Searches for none, and changes nothing. */
export const peekLimits = (admin: LimitAdmin, { limits, scope }: AskedLimits, cost: number) =>
  Promise.all(
    limits.map(async ({ limit }): Promise<LimitNow> => {
      const { name, size } = limit
      const where = countKeys(limit, scope)
      const unknown = { used: null, remaining: null, admits: null, retryMs: 0, resetMs: null, blockedMs: null }
      if (where.kind !== 'key') return { name, size, ...unknown }
      // In shadow a limit admits everything: what is asked is what it would do.
      const { now, asked } = await admin.peek({ ...limit, mode: 'enforce' }, where.key, scope, cost)
      const [state] = now.limits
      const retryMs = asked.reason === 'cost_exceeds_limit' ? -1 : asked.retryAfterMs
      const { used = 0, remaining = 0, resetMs = 0 } = state ?? {}
      const blockedMs = now.reason === 'blocked' ? now.retryAfterMs : 0
      return { name, size, used, remaining, admits: asked.allowed, retryMs, resetMs, blockedMs }
    }),
  )
