import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import { noRouteLimits } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { findLimits, type LimitNames, type Limits, namesForAll } from './read-limit-names.ts'
import type { Plans } from './read-plans.ts'

/** What a plan brings to every request of its subjects. `name` is empty for subjects of no plan's limits. */
interface PlanReach {
  readonly name: string
  readonly names: ReadonlySet<string>
}

/**
 * Reads the limits that routes bring of their own, and holds each together with each plan to the size of a decision.
 */
export class RouteLimits {
  readonly #reader: PolicyReader
  readonly #limits: Limits
  /** The widest first. */
  readonly #plans: readonly PlanReach[]
  /** Equal lists are one list, so that what is derived from it is derived once. */
  readonly #lists = new Map<string, readonly Limit[]>()

  constructor(reader: PolicyReader, limits: Limits, plans: Plans) {
    this.#reader = reader
    this.#limits = limits
    const forAll = namesForAll(limits)
    const reaches = [...plans].map(([name, plan]) => ({
      name,
      names: new Set([...forAll, ...(plan?.limits.map((limit) => limit.name) ?? [])]),
    }))
    this.#plans = [{ name: '', names: forAll }, ...reaches].toSorted((a, b) => b.names.size - a.names.size)
  }

  /** The limits of one route; undefined when they are wrong, or too many for some plan's subjects. */
  read(at: SourcePosition | undefined, written: LimitNames): readonly Limit[] | undefined {
    if (at === undefined) return noRouteLimits
    const own = findLimits(this.#reader, written, this.#limits)
    if (own.names.size > limitsPerDecisionMax) {
      const most = `a decision has at most ${limitsPerDecisionMax}`
      return this.#reader.problem(at, `names ${own.names.size} limits; ${most}`)
    }
    for (const { name, names } of this.#plans) {
      // More limits for all than fit in any decision are a problem there.
      if (names.size > limitsPerDecisionMax || names.size + own.names.size <= limitsPerDecisionMax) continue
      const count = new Set([...names, ...own.names]).size
      if (count <= limitsPerDecisionMax) continue
      const others = name === '' ? 'those that apply to all' : `those of plan ${name} and those that apply to all`
      const most = `a decision has at most ${limitsPerDecisionMax}`
      return this.#reader.problem(at, `makes ${count} limits with ${others}; ${most}`)
    }
    return this.#shared(own.limits)
  }

  #shared(limits: readonly Limit[]): readonly Limit[] {
    if (limits.length === 0) return noRouteLimits
    const text = limits.map(({ name }) => name).join(' ')
    const known = this.#lists.get(text)
    if (known === undefined) this.#lists.set(text, limits)
    return known ?? limits
  }
}
