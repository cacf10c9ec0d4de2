import { definedFields } from '@weir/core/defined-fields.ts'
import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import { isOfPlan } from '../match/resolve-limits.ts'
import { noRouteLimits, type Plan } from '../policy.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { type Prices, pricesName, pricesNamed } from './read-prices.ts'
import { formerBudget } from './remark-on-budgets.ts'
import * as t from './value-types.ts'

/** The limits by name; undefined for one that is there but wrong, so that its uses are not reported too. */
export type Limits = ReadonlyMap<string, Limit | undefined>

/** The plans by name; undefined as in `Limits`. */
export type Plans = ReadonlyMap<string, Plan | undefined>

/** A name of a limit with its position: whether there is such a limit is known when all are read. */
export const limitName = t.located(t.anyText('the name of a limit'))

/** Names of limits, none twice. */
export const limitNames = t.list('a list of limits by name', limitName, { nameOf: ({ value }) => value })
/** Such a list. */
export type LimitNames = NonNullable<ReturnType<typeof limitNames.read>>

/** Returns the limits with these names that are right, in the order written. */
const findLimits = (reader: PolicyReader, names: LimitNames, limits: Limits): readonly Limit[] =>
  names.flatMap(({ value, at }) => reader.find(at, 'limit', value, limits) ?? [])

/** Names of the limits for everybody, or for everybody of one plan. */
export const namesForAll = (limits: Limits, plan?: string): ReadonlySet<string> => {
  const applies = (limit: Limit) => limit.applies === 'all' && (plan === undefined || isOfPlan(limit, plan))
  return new Set([...limits.values()].flatMap((limit) => (limit !== undefined && applies(limit) ? limit.name : [])))
}

/** Longer, and records would be dated too far before what they count; shorter, and a lease is over on its way. */
export const clientLease = t.duration('100ms', '10s')
/** Of plans and routes: whether admissions of a second share a record. */
export const coalesce = t.oneOf(['1s', 'none'])

const plan = t.object('a plan', {
  limits: t.required('Names of limits; a request is admitted only if all of them admit it.', limitNames),
  prices: t.optional('Name of the price list for its subjects.', pricesName),
  budget: formerBudget,
  selfService: t.optional("Whether its subjects' keys may read their own usage. Default: false.", t.boolean),
  ...t.publicTexts,
  ownAlerts: t.optional(
    'Whether its subjects may set up their own alerts: addresses and percentages. Default: false.',
    t.boolean,
  ),
  coalesce: t.optional(
    '`1s`: one record with a count for admissions of a second that are alike. A route may say otherwise. Default: none.',
    coalesce,
  ),
  clientLease: t.optional(
    'How long applications may decide by themselves with units that they took ahead: 100ms to 10s. Default: not at all.',
    clientLease,
  ),
})

/** The section `plans`. */
export const planEntries = t.entries(plan.schema, { plural: 'plans', one: 'a plan' })

/** Reads the plans. One that is as it was in `before` is the same object. */
export function readPlans(
  reader: PolicyReader,
  at: SourcePosition,
  { limits, prices }: { readonly limits: Limits; readonly prices: Prices },
  before: ReadonlyMap<string, Plan>,
): Plans {
  return planEntries.each(reader, at, (name, field) => {
    const written = plan.find(reader, field)
    const found = readPlanLimits(reader, written?.fields.get('limits'), written?.values.limits, limits, name)
    const own = written === undefined ? {} : pricesNamed(reader, written.fields, written.values.prices, prices)
    const service = written?.values.selfService === true ? { selfService: true } : {}
    const choosing = written?.values.ownAlerts === true ? { ownAlerts: true } : {}
    const sharing = written?.values.coalesce === '1s' ? { coalesces: true } : {}
    const { title, about, clientLease: clientLeaseMs } = written?.values ?? {}
    const more = definedFields({ title, about, clientLeaseMs })
    return (
      found && sameAs(before.get(name), { name, limits: found, ...own, ...service, ...choosing, ...sharing, ...more })
    )
  })
}

function sameAs(before: Plan | undefined, plan: Plan): Plan {
  const isSame =
    before?.limits.length === plan.limits.length &&
    before.prices === plan.prices &&
    before.selfService === plan.selfService &&
    before.ownAlerts === plan.ownAlerts &&
    before.coalesces === plan.coalesces &&
    before.clientLeaseMs === plan.clientLeaseMs &&
    before.title === plan.title &&
    before.about === plan.about &&
    plan.limits.every((one, at) => one === before.limits[at])
  return isSame ? before : plan
}

function readPlanLimits(
  reader: PolicyReader,
  at: SourcePosition | undefined,
  names: LimitNames | undefined,
  limits: Limits,
  plan: string,
): readonly Limit[] | undefined {
  if (at === undefined || names === undefined) return undefined
  const found = findLimits(reader, names, limits)
  for (const { value, at: nameAt } of names) {
    const plans = limits.get(value)?.plans
    if (plans?.includes(plan) === false) reader.problem(nameAt, `${value} is only for the plans ${plans.join(', ')}`)
  }
  const forAll = namesForAll(limits, plan)
  const count = new Set([...names.map(({ value }) => value), ...forAll]).size
  const others = count - names.length
  // More limits for all than fit in any decision are one problem there, not one of each plan.
  if (others <= limitsPerDecisionMax && count > limitsPerDecisionMax) {
    const beside = others === 0 ? '' : ` with the ${others} that apply to all`
    return reader.problem(at, `adds up to ${count} limits${beside}; ${most}`)
  }
  return found
}

const most = `a decision can have at most ${limitsPerDecisionMax}`

/** Equal ones are one object, so that what is derived from it is derived once. */
export function shared<T>(known: Map<string, T>, text: string, made: T): T {
  const found = known.get(text) ?? made
  known.set(text, found)
  return found
}

/**
 * Reads the limits that routes have of their own, and checks that each list fits into a decision together with each
 * plan. A list is undefined when it is too long for a decision, or for some plan's subjects.
 */
export function routeLimitsReader(reader: PolicyReader, limits: Limits, plans: Plans) {
  const ofPlans = [...plans].map(
    ([name, plan]) =>
      [name, new Set([...namesForAll(limits, name), ...(plan?.limits ?? []).map((limit) => limit.name)])] as const,
  )
  /** The limits of every request of a plan's subjects, the most first; the name is empty for no plan's. */
  const ofAllPlans = [['', namesForAll(limits, '')] as const, ...ofPlans].toSorted(([, a], [, b]) => b.size - a.size)
  const lists = new Map([['', noRouteLimits]])
  return function readRouteLimits(at: SourcePosition | undefined, names: LimitNames): readonly Limit[] | undefined {
    if (at === undefined) return noRouteLimits
    const found = findLimits(reader, names, limits)
    const forAnyPlan = names.filter(({ value }) => limits.get(value)?.plans === undefined).length
    if (forAnyPlan > limitsPerDecisionMax) return reader.problem(at, `names ${forAnyPlan} limits; ${most}`)
    for (const [plan, own] of ofAllPlans) {
      // More limits for all than fit in any decision are a problem there.
      if (own.size > limitsPerDecisionMax || own.size + names.length <= limitsPerDecisionMax) continue
      const met = names.map(({ value }) => value).filter((name) => limits.get(name)?.plans?.includes(plan) ?? true)
      const count = new Set([...own, ...met]).size
      if (count <= limitsPerDecisionMax) continue
      const others = plan === '' ? 'those that apply to all' : `the limits of plan ${plan} and those that apply to all`
      return reader.problem(at, `adds up to ${count} limits with ${others}; ${most}`)
    }
    return shared(lists, found.map(({ name }) => name).join(' '), found)
  }
}

/** The name of a plan, which `planOf` looks up. */
export const planName = t.anyText('the name of a plan')

/** The plan that a key names. */
export function planOf<K extends string>(
  reader: PolicyReader,
  fields: Fields,
  values: Readonly<Partial<Record<K, string | undefined>>>,
  key: K,
  plans: Plans,
): Plan | undefined {
  const [at, name] = [fields.get(key), values[key]]
  return at === undefined || name === undefined ? undefined : reader.find(at, 'plan', name, plans)
}
