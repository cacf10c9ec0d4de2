import { isIP } from 'node:net'
import type { DecisionRow } from '@weir/clickhouse/decision-queries.ts'
import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { explainLimits } from '@weir/policy/match/resolve-limits.ts'
import { mayBeSubject, unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Policy } from '@weir/policy/policy.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import type { LimitNow } from '@weir/redis/limits-now.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'

/** Looks at limits in Redis. Rejects when Redis does not answer. */
export type PeekLimits = (asked: AskedLimits, cost: number) => Promise<readonly LimitNow[]>

/** The request of a decision, in terms of the policy of now; undefined if its subject is none any more. */
function askedNow(policy: Policy, row: DecisionRow): AskedLimits | undefined {
  const { subject: id, key_id: keyId, method, ip } = row
  if (!mayBeSubject(policy, id)) return undefined
  const subject = policy.subjects.get(id) ?? unlistedSubject(id, policy.plans.get(row.plan) ?? noPlan)
  const route = policy.routes.find(({ template }) => template === row.route) ?? unmatchedRoute
  const { timeZone, anchor } = subject
  // An address that was recorded as a prefix or a hash is not the one that was counted by.
  const isWhole = isIP(ip) !== 0 || ip.endsWith('/64')
  const known = isWhole ? { ip: addressScope(ip.replace('/64', '')) } : {}
  const scope = { subject: id, timeZone, anchor, keyId, route: route.template, method, ...known }
  return { subject, route, limits: explainLimits(policy, subject, route), scope }
}

/** Says what the same request would get now, as far as the caller may know it; null where that cannot be said. */
export async function standsNow(
  { policy, peekLimits }: { readonly policy: Policy | undefined; readonly peekLimits: PeekLimits | undefined },
  row: DecisionRow,
  { isOwn }: Reach,
) {
  const asked = policy === undefined ? undefined : askedNow(policy, row)
  if (asked === undefined || peekLimits === undefined) return null
  const limits = asked.limits.map(({ limit }) => limit)
  const enforced = limits.filter(({ mode }) => mode === 'enforce').map(({ name }) => name)
  const shared = limits.filter(({ by }) => !isOfOneSubject(by)).map(({ name }) => name)
  const found = await peekLimits(asked, row.cost)
  const counting = found.filter(({ name }) => enforced.includes(name))
  const refusing = counting.find(({ admits }) => admits === false)
  return {
    // What one limit refuses is refused, whatever is not known of the others.
    allowed: refusing !== undefined ? false : counting.every(({ admits }) => admits === true) ? true : null,
    plan: asked.subject.plan.name,
    denied_by: refusing?.name ?? '',
    limits: (isOwn ? counting : found).map(({ name, size, used, remaining, admits, retryMs: retry_ms }) => {
      const isHidden = isOwn && shared.includes(name)
      return { name, size, used: isHidden ? null : used, remaining: isHidden ? null : remaining, admits, retry_ms }
    }),
  }
}
