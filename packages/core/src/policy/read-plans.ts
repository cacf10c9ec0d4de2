import { type Limit, limitsPerDecisionMax } from '../limits/limit.ts'
import type { Plan } from './policy.ts'
import type { Place, PolicyReader } from './policy-reader.ts'
import { nameRule, parseName } from './policy-values.ts'
import { didYouMean } from './suggest.ts'

type Limits = ReadonlyMap<string, Limit | undefined>

/** The plans by name; undefined stands for one that is there but wrong. */
export function readPlans(reader: PolicyReader, place: Place, limits: Limits): Map<string, Plan | undefined> {
  const plans = new Map<string, Plan | undefined>()
  for (const [name, field] of reader.map(place, 'a map of plans by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a plan must be ${nameRule}`)
    const list = reader.fields(field, 'a plan', ['limits'], ['limits'])?.get('limits')
    const found = list === undefined ? undefined : readPlanLimits(reader, list, limits)
    plans.set(name, found === undefined ? undefined : { name, limits: found })
  }
  return plans
}

function readPlanLimits(reader: PolicyReader, place: Place, limits: Limits): readonly Limit[] | undefined {
  const items = reader.list(place, 'a list of limits by name')
  if (items === undefined) return undefined
  const names = new Set<string>()
  for (const item of items) {
    const name = reader.text(item, 'the name of a limit', (text) => text)
    if (name === undefined) continue
    if (names.has(name)) reader.problem(item, `${name} is named twice`)
    names.add(name)
    if (!limits.has(name))
      reader.problem(item, `there is no limit ${JSON.stringify(name)}${didYouMean(name, limits.keys())}`)
  }
  const own = [...names].map((name) => limits.get(name)).filter((limit) => limit !== undefined)
  const forAll = [...limits.values()].filter((limit) => limit?.applies === 'all' && !names.has(limit.name)).length
  // More limits for all than fit in any decision are one problem there, not one of each plan.
  if (forAll <= limitsPerDecisionMax && names.size + forAll > limitsPerDecisionMax) {
    const beside = forAll === 0 ? '' : ` with the ${forAll} that apply to all`
    return reader.problem(
      place,
      `makes ${names.size + forAll} limits${beside}; a decision has at most ${limitsPerDecisionMax}`,
    )
  }
  return own
}
