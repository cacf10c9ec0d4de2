import type { Plan } from '../policy.ts'
import type { Place, PolicyReader } from './policy-reader.ts'

/** The plan that is named; undefined also for one that is there but wrong, which is a problem where it stands. */
export function readPlanName(
  reader: PolicyReader,
  place: Place,
  plans: ReadonlyMap<string, Plan | undefined>,
): Plan | undefined {
  const name = reader.text(place, 'the name of a plan', (text) => text)
  if (name === undefined) return undefined
  if (plans.has(name)) return plans.get(name)
  return reader.problem(place, `there is no plan ${JSON.stringify(name)}${reader.near(name, plans.keys())}`)
}
