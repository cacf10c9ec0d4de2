import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { type Algorithm, algorithms, type Limit } from '@weir/core/limits/limit.ts'
import type { Ancestor, LimitRequest } from '@weir/core/limits/limit-store.ts'
import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { Redis } from 'ioredis'
import { bothWays, type Contestant, logSizeMax, refuseToCount, sizeMax, windowMs } from './contestant.ts'

/** The most is what a request of three scopes with several spans each comes to. */
const limitCounts = [1, 2, 3, 8] as const

/** A store as the ingress has it, but that a busy machine does not make give up. */
export const openStore = (redis: Redis): RedisLimitStore =>
  new RedisLimitStore({ redis, clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 5_000 })

/** Made for every decision, as the ingress does. */
export const requestOf = (subject: string, limits: readonly Limit[]): LimitRequest => ({
  scope: { subject, keyId: 'key', ip: '192.0.2.1', route: 'GET /things', method: 'GET' },
  cost: 1,
  peek: false,
  limits,
  timeZone: 'UTC',
  anchor: 1,
})

/** Charges all subjects at once on these limits. */
function chargeAll(
  label: string,
  store: RedisLimitStore,
  limits: readonly Limit[],
  aboveOf?: (subject: string) => readonly Ancestor[],
): Contestant['decide'] {
  return async (subjects) => {
    const charged = subjects.map((subject) => {
      const request = requestOf(subject, limits)
      return store.decide(aboveOf ? { ...request, scope: { ...request.scope, above: aboveOf(subject) } } : request)
    })
    for (const decision of await Promise.all(charged)) {
      if (decision.charged !== 'yes') refuseToCount(label, decision.reason)
    }
  }
}

/** A bucket that would refill between two decisions would keep no state, and cost less than one in use. */
const refilledPerWindow = 1_000

const sizesOf = (algorithm: Algorithm): Pick<Limit, 'size' | 'capacity'> => {
  if (algorithm === 'token_bucket') return { size: refilledPerWindow, capacity: logSizeMax }
  const size = algorithm === 'sliding_log' ? logSizeMax : sizeMax
  return { size, capacity: size }
}

/** Limits of one algorithm that differ in their spans. */
function limitsOf(algorithm: Algorithm, count: number, prefix = 'bench'): Limit[] {
  return Array.from({ length: count }, (_, index) =>
    buildLimit({
      ...sizesOf(algorithm),
      name: `${prefix}-${algorithm}-${count}-${index}`,
      algorithm,
      span: { kind: 'window', ms: windowMs + index * 60_000 },
    }),
  )
}

export const weirLabel = (algorithm: Algorithm, count: number): string => `Weir ${algorithm} × ${count}`

export const levelsLabel = 'Weir fixed_window × 8 over four levels'

/** Twenty in a team, ten teams in a division, and all in two companies. */
const aboveOf = (subject: string): readonly Ancestor[] => {
  const at = Number(subject.slice(-6))
  const ids = [`team-${at % 100}`, `division-${at % 10}`, `company-${at % 2}`]
  return ids.map((id) => ({ id, timeZone: 'UTC', anchor: 1 }))
}

/** Weir's store with each algorithm and number of limits, on one connection. */
export function weirContestants(redis: Redis): Contestant[] {
  const store = openStore(redis)
  const inLevels = limitsOf('fixed_window', 8, 'levels').map((limit, at) => ({ ...limit, level: at >> 1 }))
  const levels = bothWays(
    { label: levelsLabel, limits: 8, keys: 'weir:1:{*}:levels-*' },
    chargeAll(levelsLabel, store, inLevels, aboveOf),
  )
  const ofOne = algorithms.flatMap((algorithm) =>
    limitCounts.flatMap((count) => {
      const label = weirLabel(algorithm, count)
      return bothWays(
        { label, limits: count, keys: `weir:1:{*}:bench-${algorithm}-${count}-*` },
        chargeAll(label, store, limitsOf(algorithm, count)),
      )
    }),
  )
  return [...ofOne, ...levels]
}
