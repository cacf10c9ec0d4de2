import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import type { Plan } from '../policy.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { findLimits, type LimitNames, type Limits, limitNames, namesForAll } from './read-limit-names.ts'
import * as t from './value-types.ts'

const plan = t.object('a plan', {
  limits: t.required('Names of limits; a request is admitted only if all of them admit it.', limitNames),
})

export const planEntries = t.entries(plan.schema, { plural: 'plans', one: 'a plan' })

/** The plans by name; undefined stands for one that is there but wrong, so that what names it is not wrong too. */
export type Plans = ReadonlyMap<string, Plan | undefined>

/** Reads the plans. One that is as it was in `before` is the same object. */
export function readPlans(
  reader: PolicyReader,
  at: SourcePosition,
  limits: Limits,
  before: ReadonlyMap<string, Plan>,
): Map<string, Plan | undefined> {
  const plans = new Map<string, Plan | undefined>()
  const forAll = namesForAll(limits)
  for (const [name, field] of planEntries.read(reader, at)) {
    const written = plan.find(reader, field)
    const found = readPlanLimits(reader, written?.fields.get('limits'), written?.values.limits, limits, forAll)
    plans.set(name, found === undefined ? undefined : sameAs(before.get(name), { name, limits: found }))
  }
  return plans
}

function sameAs(before: Plan | undefined, plan: Plan): Plan {
  const isSame =
    before?.limits.length === plan.limits.length && plan.limits.every((one, at) => one === before.limits[at])
  return isSame ? before : plan
}

function readPlanLimits(
  reader: PolicyReader,
  at: SourcePosition | undefined,
  names: LimitNames | undefined,
  limits: Limits,
  forAll: ReadonlySet<string>,
): readonly Limit[] | undefined {
  if (at === undefined || names === undefined) return undefined
  const own = findLimits(reader, names, limits)
  const count = new Set([...own.names, ...forAll]).size
  const others = count - own.names.size
  // More limits for all than fit in any decision are one problem there, not one of each plan.
  if (others <= limitsPerDecisionMax && count > limitsPerDecisionMax) {
    const beside = others === 0 ? '' : ` with the ${others} that apply to all`
    return reader.problem(at, `makes ${count} limits${beside}; a decision has at most ${limitsPerDecisionMax}`)
  }
  return own.limits
}

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
