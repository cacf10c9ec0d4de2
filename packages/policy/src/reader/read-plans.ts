import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import type { Plan } from '../policy.ts'
import { nameRule, parseName } from '../policy-values.ts'
import type { Place, PolicyReader } from './policy-reader.ts'
import { namesForAll, readLimitNames } from './read-limit-names.ts'
import type { Limits } from './read-limits.ts'

/** The plans by name; undefined stands for one that is there but wrong. One that is as it was in `before` is the same object. */
export function readPlans(
  reader: PolicyReader,
  place: Place,
  limits: Limits,
  before: ReadonlyMap<string, Plan>,
): Map<string, Plan | undefined> {
  const plans = new Map<string, Plan | undefined>()
  const forAll = namesForAll(limits)
  for (const [name, field] of reader.map(place, 'a map of plans by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a plan must be ${nameRule}`)
    const list = reader.fields(field, 'a plan', ['limits'], ['limits'])?.get('limits')
    const found = list === undefined ? undefined : readPlanLimits(reader, list, limits, forAll)
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
  place: Place,
  limits: Limits,
  forAll: ReadonlySet<string>,
): readonly Limit[] | undefined {
  const own = readLimitNames(reader, place, limits)
  if (own === undefined) return undefined
  const count = new Set([...own.names, ...forAll]).size
  const others = count - own.names.size
  // More limits for all than fit in any decision are one problem there, not one of each plan.
  if (others <= limitsPerDecisionMax && count > limitsPerDecisionMax) {
    const beside = others === 0 ? '' : ` with the ${others} that apply to all`
    return reader.problem(place, `makes ${count} limits${beside}; a decision has at most ${limitsPerDecisionMax}`)
  }
  return own.limits
}
