import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { unmatchedRoute } from '../match/match-route.ts'
import { createLimitResolver } from '../match/resolve-limits.ts'
import { unlistedSubject } from '../named-subject.ts'
import { noPlan, type Policy, type Route } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'

/** Pairs of a plan and a route that are looked at for a remark: beyond them it is left out. */
const pairsMax = 10_000

/** A larger log takes more than 80 kB of Redis for a count: worth knowing before a thousand subjects have one. */
const quietLogSizeMax = 10_000

/** Remarks on limits that are right and do less, or cost more, than their writer may expect. `at` is their section. */
export function remarkOnLimits(reader: PolicyReader, at: SourcePosition, policy: Policy): void {
  const limitsAt = reader.map(at, 'a map of limits')
  const fieldOf = (name: string, key: string) => {
    const limitAt = limitsAt?.get(name)
    return limitAt === undefined ? undefined : reader.map(limitAt, 'a limit')?.get(key)
  }
  for (const { name, algorithm, size } of policy.limits.values()) {
    const sizeAt = algorithmFacts[algorithm].keepsEachUnit && size > quietLogSizeMax ? fieldOf(name, 'size') : undefined
    const memory = `up to ${Math.ceil((size * 8) / 1_000)} kB of Redis memory for each count, 8 bytes per unit`
    if (sizeAt !== undefined) reader.remark(sizeAt, `uses ${memory}; a sliding_window uses 41 bytes`)
  }
  const leased = [...policy.limits.values()].filter(({ lease }) => lease > 0)
  const findUnleased = leased.length === 0 ? undefined : unleasedFinder(policy)
  for (const { name } of leased) {
    const [leaseAt, other] = [fieldOf(name, 'lease'), findUnleased?.(name)]
    if (leaseAt === undefined || other === undefined) continue
    const remedy = 'without a `lease` on that limit too, each request still calls Redis'
    reader.remark(leaseAt, `saves nothing: all its requests also count against ${other}; ${remedy}`)
  }
}

/** Finds a limit that Redis is asked for in requests with a leased limit; undefined if some of these meet none. */
function unleasedFinder(policy: Policy): (leased: string) => string | undefined {
  const resolve = createLimitResolver(policy)
  const routes = new Map<readonly Limit[], Route>([unmatchedRoute, ...policy.routes].map((one) => [one.limits, one]))
  const plans = policy.plans.size === 0 ? [noPlan] : [...policy.plans.values()]
  if (plans.length * routes.size > pairsMax) return () => undefined
  const met = plans.flatMap((plan) => {
    const subject = unlistedSubject('', plan)
    return [...routes.values()].map((route) => resolve(subject, route))
  })
  const isAsked = (limit: Limit) => limit.lease === 0 || !refuses(limit)
  return (leased) => {
    const theirs = met.filter((limits) => limits.some(({ name }) => name === leased))
    return theirs.every((limits) => limits.some(isAsked)) ? theirs[0]?.find(isAsked)?.name : undefined
  }
}
