import { limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import { isOfPlan } from '../match/resolve-limits.ts'
import type { Plan, Policy } from '../policy.ts'

/** Subjects from a topmost one down to those that call: a company, a department, a team, a member. */
export const levelsMax = 4

/** A subject by what levels are checked by; its plan is undefined where that is wrong by itself. */
export interface Level {
  readonly parent: string | undefined
  readonly plan: Plan | undefined
}

/** Checks who may stand above whom. */
export class LevelRules {
  readonly #policy: Pick<Policy, 'limitsForAll' | 'routes'>
  /** By the names of plans from a subject up; empty for none. There are few chains of plans, and a million subjects. */
  readonly #faults = new Map<string, string>()

  constructor(policy: Pick<Policy, 'limitsForAll' | 'routes'>) {
    this.#policy = policy
  }

  /** Returns why a subject cannot stand below its parent; undefined if it can. */
  faultOf(subject: Level, levelOf: (id: string) => Level | undefined): string | undefined {
    const plans: Plan[] = []
    let isWhole = true
    let level: Level | undefined = subject
    for (let height = 1; level !== undefined; height += 1) {
      if (height > levelsMax) return `a tree has at most ${levelsMax} levels, and no subject is below itself`
      if (level.plan === undefined) isWhole = false
      else plans.push(level.plan)
      const { parent }: Level = level
      level = parent === undefined ? undefined : levelOf(parent)
      if (level === undefined && parent !== undefined) return `there is no subject ${JSON.stringify(parent)}`
    }
    return isWhole ? this.#faultOfPlans(plans) : undefined
  }

  #faultOfPlans(plans: readonly Plan[]): string | undefined {
    let text = ''
    for (const { name } of plans) text += `${name} `
    const fault = this.#faults.get(text) ?? faultOfPlans(plans, this.#policy) ?? ''
    this.#faults.set(text, fault)
    return fault === '' ? undefined : fault
  }
}

/** A name says in which count a request was refused, so it is met at one level alone. */
function faultOfPlans(
  [own, ...above]: readonly Plan[],
  { limitsForAll, routes }: Pick<Policy, 'limitsForAll' | 'routes'>,
): string | undefined {
  if (own === undefined) return undefined
  const namesOf = ({ limits }: Pick<Plan, 'limits'>, plan: Plan) =>
    limits.filter((limit) => isOfPlan(limit, plan.name)).map(({ name }) => name)
  const always = [...namesOf(own, own), ...namesOf({ limits: limitsForAll }, own)]
  const lists = [...new Set(routes.map(({ limits }) => limits))].map((limits) => [
    ...always,
    ...namesOf({ limits }, own),
  ])
  const met = new Map([...always, ...lists.flat()].map((name) => [name, own.name]))
  const most = Math.max(new Set(always).size, ...lists.map((names) => new Set(names).size))
  let count = most
  for (const plan of above) {
    for (const name of namesOf(plan, plan)) {
      const other = met.get(name)
      if (other !== undefined) {
        const where = other === plan.name ? `of plan ${other}` : `of plans ${other} and ${plan.name}`
        return `the limit ${name} ${where} would count at two levels; a limit counts at one`
      }
      met.set(name, plan.name)
      count += 1
    }
  }
  if (count <= limitsPerDecisionMax) return undefined
  return `adds up to ${count} limits over its levels; a decision can have at most ${limitsPerDecisionMax}`
}
