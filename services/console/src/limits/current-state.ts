import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { type ExplainedLimit, explainLimits } from '@weir/policy/match/resolve-limits.ts'
import { mayBeSubject, unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Policy } from '@weir/policy/policy.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import type { LimitNow } from '@weir/redis/limits-now.ts'
import { networkScope } from '@weir/runtime/address-scope.ts'

/** Looks at limits in Redis. Rejects when Redis does not answer. */
export type PeekLimits = (asked: AskedLimits, cost: number) => Promise<readonly LimitNow[]>

/** The request of a decision, in terms of the policy of now; undefined if its subject is none any more. */
function askedNow(policy: Policy, row: StoredDecision): AskedLimits | undefined {
  const { subject: id, key_id: keyId, method, ip } = row
  if (!mayBeSubject(policy, id)) return undefined
  const subject = policy.subjects.get(id) ?? unlistedSubject(id, policy.plans.get(row.plan) ?? noPlan)
  const route = policy.routes.find(({ template }) => template === row.route) ?? unmatchedRoute
  const { timeZone, anchor } = subject
  // An address that was recorded as a prefix or a hash is not the one that was counted by.
  const { ipv6Prefix } = policy.identity
  const whole = networkScope(ip, ipv6Prefix)
  const known = whole === '' ? {} : { ip: whole }
  const above = subject.parent && ancestorsOf(subject)
  const scope = { subject: id, timeZone, anchor, keyId, route: route.template, method, above, ...known }
  return { subject, route, limits: explainLimits(policy, subject, route), scope }
}

/** Says what a request of this cost would get now, and how its limits stand, as far as the caller may know it. */
export async function standingOf(
  peekLimits: PeekLimits,
  { asked, cost }: { readonly asked: AskedLimits; readonly cost: number },
  reach: Reach,
) {
  const found = await peekLimits(asked, cost)
  // What those above have left is not for a member to know.
  const isShown = ({ explained: { at } }: (typeof both)[number]) => at === undefined || reach.coversNow([at])
  const both = asked.limits.map((explained, at) => ({ explained, now: found[at] as LimitNow }))
  const enforced = both.filter(({ explained }) => explained.limit.mode === 'enforce')
  const refusing = enforced.find(({ now }) => now.admits === false)
  return {
    // What one limit refuses is refused, whatever is not known of the others.
    allowed: refusing !== undefined ? false : enforced.every(({ now }) => now.admits === true) ? true : null,
    denied_by: refusing?.now.name ?? '',
    limits: (reach.isOwn ? enforced.filter(isShown) : both).map(({ explained, now }) => {
      const isHidden = reach.isOwn && !isOfOneSubject(explained.limit.by)
      return { explained, now: isHidden ? { ...now, used: null, remaining: null } : now }
    }),
  }
}

/** How a limit stands, in the names of the wire. */
export function shownLimit({ name, size, used, remaining, admits, retryMs: retry_ms }: LimitNow) {
  return { name, size, used, remaining, admits, retry_ms }
}

/** Says what the same request would get now, as far as the caller may know it; null where that cannot be said. */
export async function standsNow(
  { policy, peekLimits }: { readonly policy: Policy | undefined; readonly peekLimits: PeekLimits | undefined },
  row: StoredDecision,
  reach: Reach,
) {
  const asked = policy === undefined ? undefined : askedNow(policy, row)
  if (asked === undefined || peekLimits === undefined) return null
  const { limits, ...standing } = await standingOf(peekLimits, { asked, cost: row.cost }, reach)
  return {
    ...standing,
    plan: asked.subject.plan.name,
    limits: limits.map(({ explained, now }) => ({ ...shownLimit(now), capacity: explained.limit.capacity })),
  }
}
