import { algorithmFacts, countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { shutOutMsOf } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Route, Subject } from './policy.ts'

/** For how long an application may decide about such requests with units that it took ahead, in milliseconds; or 0. */
export function clientLeaseMsOf({ plan }: Pick<Subject, 'plan'>, route: Route): number {
  // What is known of a request only later has a record of its own.
  const isKnownLater = route.settleMs !== undefined || (route.meter !== undefined && route.meter !== 'none')
  return isKnownLater ? 0 : Math.min(plan.clientLeaseMs ?? 0, route.clientLeaseMs ?? Number.POSITIVE_INFINITY)
}

/** Why nobody takes units of a limit ahead; undefined where they can. */
export function whyNotLeased(limit: Limit): string | undefined {
  const { algorithm, unit, onExceed, lease, clientLease } = limit
  if (countsInFlight(limit)) return 'counts requests in flight'
  if (algorithmFacts[algorithm].keepsEachUnit) return `is a ${algorithm}, which keeps the time of each unit`
  if (algorithmFacts[algorithm].hasBurst && clientLease !== true)
    return `is a ${algorithm} without \`clientLease: true\``
  if (unit !== undefined) return `counts ${unit}`
  if (shutOutMsOf(limit) > 0) return 'has a `block`'
  if (lease > 0) return 'has a `lease`, which each ingress holds by itself'
  return onExceed.kind === 'delay' ? 'has `onExceed: delay`' : undefined
}
