import { quantity } from '@weir/core/format.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import { ancestorsOf } from '../ancestors.ts'
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

type ByPlan<T> = Map<Plan, Map<OwnLimits, T>>

/** The lists of subjects below the same plans with the same versions of limits. */
interface Place {
  readonly byPlan: ByPlan<Map<readonly Limit[], readonly Limit[]>>
  /** The limits of those above, each at its level. */
  readonly above: readonly Limit[]
  readonly level: number
  /** By the next subject up. */
  readonly higher: ByPlan<Place>
}

const placeOf = (above: readonly Limit[], level: number): Place => ({
  byPlan: new Map(),
  above,
  level,
  higher: new Map(),
})

/** Equal ones are one object, as what is derived from a limit is kept by its identity. */
const atLevels = new WeakMap<Limit, Map<number, Limit>>()

function atLevel(limit: Limit, level: number): Limit {
  const known = atLevels.get(limit) ?? new Map<number, Limit>()
  const found = known.get(level) ?? { ...limit, level }
  atLevels.set(limit, known.set(level, found))
  return found
}

/**
 * Gives the limits of a subject's request to a route: its plan's in the plan's order, then the route's, then those for
 * all, each once, without those of other plans, and in the subject's own version if it has one; then those of the plans
 * of its ancestors, the nearest first, in their own versions. Equal plans, own versions and limits of the route give
 * the same array, so that what is derived from it can be kept by its identity. What does not apply replaces nothing,
 * and no limit replaces one of another level.
 */
export function createLimitResolver(
  policy: Policy,
  applies: (limit: Limit) => boolean = () => true,
): (subject: Subject, route: Route) => readonly Limit[] {
  let lowest = placeOf([], 0)
  let kept = 0

  const higherThan = (place: Place, { plan, ownLimits }: Subject): Place => {
    const known = place.higher.get(plan)?.get(ownLimits)
    if (known !== undefined) return known
    const level = place.level + 1
    const own = plan.limits.filter((limit) => isOfPlan(limit, plan.name) && applies(limit))
    const versions = withoutReplaced(own.map((limit) => ownLimits.get(limit.name) ?? limit))
    const made = placeOf([...place.above, ...versions.map((limit) => atLevel(limit, level))], level)
    place.higher.set(plan, (place.higher.get(plan) ?? new Map()).set(ownLimits, made))
    return made
  }

  /** Its own lists are kept where its ancestors have led. */
  const placeBelow = ({ parent }: Subject): Place => {
    let place = lowest
    for (let above = parent; above !== undefined; above = above.parent) place = higherThan(place, above)
    return place
  }

  const make = (subject: Subject, route: Route): readonly Limit[] => {
    const { id, plan, ownLimits } = subject
    if (plan !== noPlan && policy.plans.get(plan.name) !== plan)
      throw new RangeError(`subject ${id} is of another policy: plan ${plan.name}`)
    if (kept >= listsMax) {
      lowest = placeOf([], 0)
      kept = 0
    }
    const { byPlan, above } = placeBelow(subject)
    const own = withoutReplaced(metLimits(policy, plan, route.limits, ownLimits).filter(applies))
    const list = above.length === 0 ? own : [...own, ...above]
    // The policy was checked; this holds for subjects of tokens, whose plans stand below whom their issuer says.
    if (list.length > limitsPerDecisionMax) throw new RangeError(`${id} has ${list.length} limits over its levels`)
    const lists = byPlan.get(plan) ?? new Map<OwnLimits, Map<readonly Limit[], readonly Limit[]>>()
    byPlan.set(plan, lists)
    lists.set(ownLimits, (lists.get(ownLimits) ?? new Map()).set(route.limits, list))
    kept += 1
    return list
  }

  // A plan with too many is found before a request is.
  for (const plan of [noPlan, ...policy.plans.values()]) metLimits(policy, plan, noRouteLimits, noOwnLimits)
  return function resolveLimits(subject, route) {
    const { byPlan } = subject.parent === undefined ? lowest : placeBelow(subject)
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
  /** The ancestor that it counts at; absent for the subject itself. */
  readonly at?: string
}

/** The limits by which an ancestor's plan counts what is below it. */
function explainAbove(
  { id, plan, ownLimits }: Subject,
  level: number,
  versionOf: (limit: Limit, because: readonly string[], own: Limit | undefined) => ExplainedLimit,
): readonly ExplainedLimit[] {
  const own = plan.limits.filter((limit) => isOfPlan(limit, plan.name))
  const versions = withoutReplaced(own.map((limit) => ownLimits.get(limit.name) ?? limit)).map(({ name }) => name)
  return own
    .filter(({ name }) => versions.includes(name))
    .map((limit) => {
      const version = ownLimits.get(limit.name)
      const because = [`plan ${plan.name} of ${id}`]
      return { ...versionOf(atLevel(limit, level), because, version && atLevel(version, level)), at: id }
    })
}

/** Returns why a limit applies to a subject, and where its size or other settings are the subject's own. */
export function becauseOf({ limit, because, own, commonSize, at }: ExplainedLimit, { id }: Pick<Subject, 'id'>) {
  if (!own) return because
  const size = limit.currency === undefined ? commonSize : quantity(commonSize, limit.currency)
  return [...because, `${at ?? id}'s own ${limit.size === commonSize ? 'settings' : `size instead of ${size}`}`]
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
  const versionOf = (limit: Limit, because: readonly string[], own: Limit | undefined): ExplainedLimit => ({
    limit: own ?? limit,
    because,
    own: own !== undefined,
    commonSize: limit.size,
  })
  const below = explained.map(({ limit, because }) => versionOf(limit, because, ownLimits.get(limit.name)))
  return [...below, ...ancestorsOf(subject).flatMap((above, at) => explainAbove(above, at + 1, versionOf))]
}
