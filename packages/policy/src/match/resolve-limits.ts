import { quantity } from '@weir/core/format.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import {
  noOwnLimits,
  noPlan,
  noRouteLimits,
  type OwnLimits,
  type Plan,
  type Policy,
  type Route,
  type Subject,
} from '../policy.ts'

/** Lists kept at most; one is 200 bytes. Few policies have a thousand. Beyond, the keeping starts again. */
const listsMax = 100_000

type Lists = Map<OwnLimits, Map<readonly Limit[], readonly Limit[]>>

/**
 * Gives the limits of a subject's request to a route: its plan's in the plan's order, then the route's, then those for
 * all, each once, without those of other plans, and in the subject's own version if it has one. Equal plan, own
 * versions and limits of the route give the same array, so that what is derived from it can be kept by its identity.
 * What does not apply replaces nothing.
 */
export function createLimitResolver(
  policy: Policy,
  applies: (limit: Limit) => boolean = () => true,
): (subject: Subject, route: Route) => readonly Limit[] {
  const byPlan = new Map<Plan, Lists>()
  let kept = 0
  const limitsOf = (ofRoute: readonly Limit[], plan: Plan, own: OwnLimits) =>
    withoutReplaced(metLimits(policy, plan, ofRoute, own).filter(applies))

  const make = ({ id, plan, ownLimits }: Subject, route: Route): readonly Limit[] => {
    const lists = byPlan.get(plan)
    if (lists === undefined) throw new RangeError(`subject ${id} is of another policy: plan ${plan.name}`)
    if (kept >= listsMax) {
      for (const old of byPlan.values()) old.clear()
      kept = 0
    }
    const list = limitsOf(route.limits, plan, ownLimits)
    lists.set(ownLimits, (lists.get(ownLimits) ?? new Map()).set(route.limits, list))
    kept += 1
    return list
  }

  for (const plan of [noPlan, ...policy.plans.values()]) {
    const list = limitsOf(noRouteLimits, plan, noOwnLimits)
    byPlan.set(plan, new Map([[noOwnLimits, new Map([[noRouteLimits, list]])]]))
  }
  return function resolveLimits(subject, route) {
    return byPlan.get(subject.plan)?.get(subject.ownLimits)?.get(route.limits) ?? make(subject, route)
  }
}

/** Returns whether a limit applies to subjects of a plan, where something names it. */
export const isOfPlan = ({ plans }: Limit, plan: string): boolean => plans?.includes(plan) ?? true

function metLimits(policy: Policy, plan: Plan, ofRoute: readonly Limit[], own: OwnLimits): readonly Limit[] {
  const byName = new Map<string, Limit>()
  for (const limit of [...plan.limits, ...ofRoute, ...policy.limitsForAll]) {
    if (isOfPlan(limit, plan.name)) byName.set(limit.name, own.get(limit.name) ?? limit)
  }
  // parsePolicy has refused such a plan with its line; this holds for policies made in other ways.
  if (byName.size > limitsPerDecisionMax) throw new RangeError(`plan ${plan.name} has ${byName.size} limits`)
  return [...byName.values()]
}

/**
 * Leaves out the limits that others among them replace. A limit that denies nothing (in shadow, or degrading) replaces
 * only limits that deny nothing either.
 */
export function withoutReplaced(limits: readonly Limit[]): readonly Limit[] {
  const namesOf = (replacing: readonly Limit[]) => new Set(replacing.flatMap(({ replaces }) => replaces ?? []))
  const byAny = namesOf(limits)
  if (byAny.size === 0) return limits
  const byRefusing = namesOf(limits.filter(refuses))
  return limits.filter((limit) => !(refuses(limit) ? byRefusing : byAny).has(limit.name))
}

/** A limit that applies to a subject, with the words of the policy that make it do so. */
export interface ExplainedLimit {
  /** In the subject's own version, if it has one. */
  readonly limit: Limit
  /** `plan free`, `route POST /v1/search`, `applies: all`; at least one. */
  readonly because: readonly string[]
  /** Whether the subject has its own version. */
  readonly own: boolean
  /** The size that the limit has for subjects without a version of their own. */
  readonly commonSize: number
}

/** Returns why a limit applies to a subject, and where its size or other settings are the subject's own. */
export function becauseOf({ limit, because, own, commonSize }: ExplainedLimit, { id }: Pick<Subject, 'id'>) {
  if (!own) return because
  const size = limit.currency === undefined ? commonSize : quantity(commonSize, limit.currency)
  return [...because, `${id}'s own ${limit.size === commonSize ? 'settings' : `size instead of ${size}`}`]
}

/**
 * Why which limits apply to a subject's requests to a route, in the order in which they decide; without a route, to its
 * requests to any. For people: decisions use `createLimitResolver`, which says the same.
 */
export function explainLimits(policy: Policy, subject: Subject, route: Route | undefined): readonly ExplainedLimit[] {
  const { plan, ownLimits } = subject
  const routes = route === undefined ? policy.routes : [route]
  const sources = [
    ...plan.limits.map((limit) => ({ limit, because: `plan ${plan.name}` })),
    ...routes.flatMap(({ limits, template }) => limits.map((limit) => ({ limit, because: `route ${template}` }))),
    ...policy.limitsForAll.map((limit) => ({ limit, because: 'applies: all' })),
  ]
  const byName = new Map<string, { readonly limit: Limit; readonly because: string[] }>()
  for (const { limit, because } of sources) {
    if (!isOfPlan(limit, plan.name)) continue
    const known = byName.get(limit.name)
    if (known === undefined) byName.set(limit.name, { limit, because: [because] })
    else known.because.push(because)
  }
  // Over all routes, what one of them replaces applies on the others.
  const applying = route === undefined ? undefined : withoutReplaced([...byName.values()].map(({ limit }) => limit))
  const explained = [...byName.values()].filter(({ limit }) => applying?.includes(limit) ?? true)
  return explained.map(({ limit, because }) => {
    const own = ownLimits.get(limit.name)
    return { limit: own ?? limit, because, own: own !== undefined, commonSize: limit.size }
  })
}
