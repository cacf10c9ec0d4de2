import type { Explanation } from '@weir/api/decisions.ts'
import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import {
  canonicalJson,
  type Entity,
  type EntityKind,
  entityKinds,
  isJsonObject,
  type JsonObject,
} from '@weir/policy/entities.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { becauseOf, explainLimits } from '@weir/policy/match/resolve-limits.ts'
import { unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Policy } from '@weir/policy/policy.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { RecordedNames } from './impact/policy-edit.ts'
import type { PolicyFacts } from './recorded-decision.ts'

/** A part of a former policy, with its body as JSON. */
export interface HistoryEntity {
  readonly kind: string
  readonly name: string
  readonly body: string
}

/** The body of an entity of a history's row; undefined for a kind or a text that this version does not know. */
function entityOf({ kind: text, name, body: json }: HistoryEntity): Entity | undefined {
  const kind: EntityKind | undefined = entityKinds.find((one) => one === text)
  const body: unknown = JSON.parse(json)
  if (kind === undefined || !isJsonObject(body)) return undefined
  // Where requests are sent is not in the history, and decides no limit.
  const { upstream: _, ...rest } = body
  return { kind, name, origin: 'admin', position: undefined, body: kind === 'route' ? rest : body }
}

/** Returns the policy of rows of the history; undefined if this version reads them as no valid policy. */
export function policyOf({ entities }: { readonly entities: readonly HistoryEntity[] }): Policy | undefined {
  const loaded = new PolicyState().load(entities.map(entityOf).filter((one) => one !== undefined))
  return loaded.kind === 'loaded' ? loaded.policy : undefined
}

/** Returns what a policy says of a request. */
export function factsOf(
  policy: Policy,
  {
    subject: id,
    plan: name,
    route: template,
    limits = [],
    parents = [],
  }: RecordedNames & Partial<Pick<StoredDecision, 'limits' | 'parents'>>,
): PolicyFacts {
  const plan = policy.plans.get(name) ?? noPlan
  // A token or a trusted header may have put the subject on another plan than its own.
  const subject = { ...(policy.subjects.get(id) ?? unlistedSubject(id, plan)), plan }
  const route = policy.routes.find((one) => one.template === template) ?? unmatchedRoute
  // The plan of callers without a key is no remedy for a customer.
  const { anonymousPlan, unknownPlan } = policy.identity
  const plans = [...policy.plans.values()].filter((one) => one !== anonymousPlan && one !== unknownPlan)
  const above = limits.flatMap(({ name: limitName, at }) => {
    const ancestor = policy.subjects.get(at)
    const own = ancestor?.ownLimits.get(limitName)
    const common = policy.limits.get(limitName)
    if (at === '' || common === undefined) return []
    const explainedLimit = {
      limit: own ?? common,
      because: [ancestor === undefined ? `counted at ${at}` : `plan ${ancestor.plan.name} of ${at}`],
      at,
    }
    const because = becauseOf({ ...explainedLimit, own: own !== undefined, commonSize: common.size }, subject)
    return [{ limit: explainedLimit.limit, because }]
  })
  return {
    suspended: [subject, ...parents.map((one) => policy.subjects.get(one))].find((one) => one?.suspended)?.suspended,
    limits: [
      ...explainLimits(policy, subject, route).map((one) => ({ limit: one.limit, because: becauseOf(one, subject) })),
      ...above,
    ],
    plans: plans.map((one) => ({
      name: one.name,
      limits: [...explainLimits(policy, { ...subject, plan: one }, route), ...above].map(({ limit }) => limit),
    })),
  }
}

/** What one entity was at the time of a decision, and is now; only the settings that differ. Null: it was not there. */
export type ChangedEntity = NonNullable<Explanation['policy']>['since_changed'][number]

/** Returns the settings in which two bodies differ; undefined where they are the same. */
export function changedEntity(
  kind: string,
  name: string,
  then: JsonObject | undefined,
  now: JsonObject | undefined,
): ChangedEntity | undefined {
  if (then === undefined || now === undefined) {
    return then === now ? undefined : { kind, name, before: then ?? null, now: now ?? null }
  }
  const names = [...new Set([...Object.keys(then), ...Object.keys(now)])]
  const differing = names.filter((one) => canonicalJson(then[one] ?? null) !== canonicalJson(now[one] ?? null))
  if (differing.length === 0) return undefined
  const pick = (body: JsonObject) =>
    Object.fromEntries(differing.flatMap((one) => (body[one] === undefined ? [] : [[one, body[one]]])))
  return { kind, name, before: pick(then), now: pick(now) }
}
