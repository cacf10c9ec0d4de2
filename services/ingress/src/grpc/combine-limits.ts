import type { Limit } from '@weir/core/limits/limit.ts'
import { withoutReplaced } from '@weir/policy/match/resolve-limits.ts'

/** Values of attributes by their names. */
export type Values = ReadonlyMap<string, string>

/** A limit that applies to a request. */
export interface MetLimit {
  readonly limit: Limit
  /** The values that it counts by. */
  readonly values: Values
  readonly cost: number
  /** Asks only whether there is capacity, and charges nothing. */
  readonly isPeek: boolean
  /** The descriptors that are subject to it, by position; undefined for all. */
  readonly of: readonly number[] | undefined
}

/** The limits of several descriptors as those of one request. */
export interface Combined {
  readonly limits: readonly Limit[]
  /** See `LimitRequest`: some are counted by other values than `values`, or cost something else than `cost`. */
  readonly hasOverrides: boolean
  /** By position in `limits`, as `of`. */
  readonly of: readonly (readonly number[] | undefined)[]
}

/**
 * Combines the limits of several descriptors into one list, of which a decision charges all or none. A limit that
 * applies twice for the same values counts the request once, at the larger cost; one that another replaces does not
 * count it.
 */
export function combineLimits(met: readonly MetLimit[], values: Values, cost: number): Combined {
  const left = new Set(withoutReplaced(met.map(({ limit }) => limit)))
  const byCount = new Map<string, MetLimit>()
  for (const one of met) {
    if (!left.has(one.limit)) continue
    const counted = attributesOf(one.limit).flatMap((name) => [name, one.values.get(name) ?? ''])
    const count = JSON.stringify([one.limit.name, ...counted])
    const known = byCount.get(count)
    byCount.set(count, known === undefined ? one : joined(known, one))
  }
  const all = [...byCount.values()]
  const hasOverrides = all.some((one) => one.isPeek || one.cost !== cost || !isCountedBy(values, one))
  return {
    limits: hasOverrides ? all.map(apart) : all.map(({ limit }) => limit),
    hasOverrides,
    of: all.map(({ of }) => of),
  }
}

/** Names of the attributes that a limit counts by. */
export const attributesOf = ({ by }: Limit): readonly string[] =>
  by.flatMap((part) => (part.kind === 'attribute' ? [part.name] : []))

const isCountedBy = (values: Values, { limit, values: own }: MetLimit) =>
  attributesOf(limit).every((name) => own.get(name) === values.get(name))

/** Joins two limits with one count. Of two sizes, which only overrides have, the smaller applies. */
function joined(a: MetLimit, b: MetLimit): MetLimit {
  const of = a.of === undefined || b.of === undefined ? undefined : [...a.of, ...b.of]
  const limit = b.limit.size < a.limit.size ? b.limit : a.limit
  return { ...a, limit, of, cost: Math.max(a.cost, b.cost), isPeek: a.isPeek && b.isPeek }
}

const apart = ({ limit, values, cost, isPeek }: MetLimit): Limit => ({
  ...limit,
  override: { named: scopesOf(values), cost, ...(isPeek ? { isPeek } : {}) },
})

/** The values as scopes are filled from them. */
export const scopesOf = (values: Values): ReadonlyMap<string, string> =>
  new Map([...values].map(([name, value]) => [`attribute:${name}`, value]))
