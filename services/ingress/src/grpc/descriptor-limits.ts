import { hash } from 'node:crypto'
import type { Limit } from '@weir/core/limits/limit.ts'
import { withoutReplaced } from '@weir/policy/match/resolve-limits.ts'
import { type Descriptor, unitNames, unitsByMs } from './messages.ts'

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

/**
 * Combines the limits of several descriptors into one list, of which a decision charges all or none. A limit that
 * applies twice for the same values counts the request once, at the larger cost; one that another replaces does not
 * count it.
 */
export function combineLimits(met: readonly MetLimit[], values: Values, cost: number) {
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
    /** See `LimitRequest`: some are counted by other values than `values`, or cost something else than `cost`. */
    hasOverrides,
    /** By position in `limits`. */
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

/** By limit: what is known of one is cached by its identity. */
const beyond = new WeakMap<Limit, Limit>()

/** The limit as it meets what was used already: it refuses nothing, and counts what does not fit too. */
export function chargedBeyond(limit: Limit): Limit {
  const known = beyond.get(limit)
  if (known !== undefined) return known
  const made: Limit = { ...limit, onExceed: { kind: 'charge' }, blockMs: 0, blockLengths: undefined, lease: 0 }
  beyond.set(limit, made)
  return made
}

/** Overrides in the cache, because data of a limit is cached by its identity. A full cache is emptied. */
const keptMax = 1_000
const kept = new Map<string, Limit>()

/** The attribute that an override is counted by. */
export const overrideAttribute = '_override'

/** The value that a descriptor's override counts by: its domain and its entries, in a few bytes. */
export const overrideValue = (domain: string, { entries }: Descriptor): string =>
  hash('sha256', JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])]), 'base64url')

/**
 * The limit that a descriptor brings along instead of the policy's: a number of requests per unit of time for its
 * domain and entries. Undefined where it brings none. No limit of the policy begins with `_`.
 */
export function overrideLimit({ limit }: Descriptor): Limit | undefined {
  if (limit === null) return undefined
  const { requestsPerUnit: size, unit } = limit
  const ms = [...unitsByMs].find(([, number]) => number === unit)?.[0]
  if (ms === undefined) return undefined
  const id = `${ms} ${size}`
  const known = kept.get(id)
  if (known !== undefined) return known
  if (kept.size >= keptMax) kept.clear()
  const made: Limit = {
    name: `_override-${unitNames[unit]}`,
    algorithm: 'fixed_window',
    size,
    capacity: size,
    span: { kind: 'window', ms },
    by: [{ kind: 'attribute', name: overrideAttribute }],
    applies: 'plan',
    mode: 'enforce',
    blockMs: 0,
    onExceed: { kind: 'deny' },
    lease: 0,
    onUnavailable: 'local',
    thresholds: [],
    cooldownMs: 0,
  }
  kept.set(id, made)
  return made
}
