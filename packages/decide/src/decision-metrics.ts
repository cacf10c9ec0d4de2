import { type Decision, decisionSources, reasons } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Plan, Policy, Route } from '@weir/policy/policy.ts'
import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { LabelCells } from '@weir/runtime/label-cells.ts'
import { type DecisionRequest, type EntryPoint, entryPoints, type UnauthenticatedRequest } from './types.ts'

/** Names of the policy that have series of their own; a limit has nine, a route and a plan two. */
const namesMax = { limits: 100, routes: 200, plans: 50 }
/** Upper bounds of used / size. */
const utilizations = [0.5, 0.8, 0.9, 1]
/** The plan of subjects without one: an empty label would be none. */
const noPlanLabel = '_none'

/** Decisions by their outcome. */
export interface Outcomes {
  allow: number
  deny: number
}

const zeros = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>

const newOutcomes = (): Outcomes => ({ allow: 0, deny: 0 })

const newLimitCell = () => ({ allow: 0, deny: 0, utilization: new Histogram(utilizations) })

const newEntryPointCell = () => ({
  allow: zeros(reasons),
  deny: zeros(reasons),
  duration: new Histogram(buckets.decision),
})

type LimitCell = ReturnType<typeof newLimitCell>

/**
 * Counts decisions as plain numbers, each once it can be answered. Peeks are none. The cells of routes, plans and lists
 * of limits are kept by the policy's own objects, so that no name is looked up per request.
 */
export class DecisionMetrics {
  readonly entryPoints = Object.fromEntries(entryPoints.map((name) => [name, newEntryPointCell()])) as Readonly<
    Record<EntryPoint, ReturnType<typeof newEntryPointCell>>
  >
  readonly sources = zeros(decisionSources)
  readonly limits = new LabelCells(namesMax.limits, newLimitCell)
  readonly routes = new LabelCells(namesMax.routes, newOutcomes)
  readonly plans = new LabelCells(namesMax.plans, newOutcomes)
  #named: Policy | undefined
  readonly #byList = new WeakMap<readonly Limit[], readonly LimitCell[]>()
  readonly #byRoute = new WeakMap<Route, Outcomes>()
  readonly #byPlan = new WeakMap<Plan, Outcomes>()

  /** Makes the cells of a policy's names, in its order, so that they are there before the first decision. */
  addNames(policy: Policy): void {
    if (policy === this.#named) return
    this.#named = policy
    const { limits, routes, plans } = policy
    for (const name of limits.keys()) this.limits.of(name)
    for (const { template } of routes) this.routes.of(template)
    for (const name of plans.keys()) this.plans.of(name)
  }

  /**
   * Counts what `decision` says of the limits, and `answered`, which differs where it could not be recorded. `waitedMs`
   * is the time in which the request waited for capacity: it is no part of the decision's.
   */
  count(
    ask: DecisionRequest,
    limits: readonly Limit[],
    decision: Decision,
    answered: Decision,
    waitedMs: number,
  ): void {
    this.sources[decision.source ?? 'redis'] += 1
    const { plan } = ask.subject
    let ofPlan = this.#byPlan.get(plan)
    if (ofPlan === undefined) {
      ofPlan = this.plans.of(plan.name === '' ? noPlanLabel : plan.name)
      this.#byPlan.set(plan, ofPlan)
    }
    ofPlan[answered.allowed ? 'allow' : 'deny'] += 1
    this.#countAnswer(ask, answered, waitedMs)
    // A stale policy denies without a look at its limits.
    if (decision.source !== 'none' || decision.deniedBy !== '') this.#countLimits(ask, limits, decision)
  }

  /** Counts a request that no limit was asked about. */
  countUnauthenticated(ask: UnauthenticatedRequest, answered: Decision): void {
    this.sources.none += 1
    this.#countAnswer(ask, answered, 0)
  }

  #countAnswer(
    { entryPoint, startedAt, route }: Pick<DecisionRequest, 'entryPoint' | 'startedAt' | 'route'>,
    { allowed, reason }: Decision,
    waitedMs: number,
  ): void {
    const outcome = allowed ? 'allow' : 'deny'
    const cell = this.entryPoints[entryPoint]
    cell[outcome][reason] += 1
    cell.duration.observe((performance.now() - startedAt - waitedMs) / 1_000)
    let ofRoute = this.#byRoute.get(route)
    if (ofRoute === undefined) {
      ofRoute = this.routes.of(route.template)
      this.#byRoute.set(route, ofRoute)
    }
    ofRoute[outcome] += 1
  }

  #countLimits(ask: DecisionRequest, limits: readonly Limit[], { allowed, deniedBy, limits: states }: Decision): void {
    const cells = ask.limits === undefined ? this.#cellsOf(limits) : limits.map(({ name }) => this.limits.find(name))
    const isWhole = states.length === limits.length
    for (let at = 0; at < limits.length; at += 1) {
      const [limit, cell] = [limits[at], cells[at]]
      if (limit === undefined || cell === undefined) continue
      if (!allowed && limit.name === deniedBy) cell.deny += 1
      else cell.allow += 1
      const state = isWhole ? states[at] : states.find(({ name }) => name === limit.name)
      if (state !== undefined && state.size > 0) cell.utilization.observe(state.used / state.size)
    }
  }

  /** The limits of a request are the same list for the same plan, route and own limits. */
  #cellsOf(limits: readonly Limit[]): readonly LimitCell[] {
    let cells = this.#byList.get(limits)
    if (cells === undefined) {
      cells = limits.map(({ name }) => this.limits.of(name))
      this.#byList.set(limits, cells)
    }
    return cells
  }
}
