import { whyNotLeased } from '../client-lease.ts'
import { unmatchedRoute } from '../match/match-route.ts'
import { createLimitResolver } from '../match/resolve-limits.ts'
import { unlistedSubject } from '../named-subject.ts'
import type { Policy } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'

/** Remarks on plans whose applications may take units ahead, and cannot because of a limit. `at` is their section. */
export function remarkOnClientLeases(reader: PolicyReader, at: SourcePosition, policy: Policy): void {
  const leasing = [...policy.plans.values()].filter(({ clientLeaseMs }) => clientLeaseMs !== undefined)
  if (leasing.length === 0) return
  const resolve = createLimitResolver(policy)
  const plansAt = reader.map(at, 'a map of plans')
  for (const plan of leasing) {
    const leaseAt = reader.map(plansAt?.get(plan.name) ?? at, 'a plan')?.get('clientLease')
    const reasons = resolve(unlistedSubject('', plan), unmatchedRoute).flatMap((limit) => {
      const why = whyNotLeased(limit)
      return why === undefined ? [] : [`${limit.name} ${why}`]
    })
    if (leaseAt === undefined || reasons.length === 0) continue
    reader.remark(leaseAt, `has no effect: ${reasons.join('; ')}. Each request still asks Weir`)
  }
}
