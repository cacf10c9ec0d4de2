import type { Limit } from '@weir/core/limits/limit.ts'
import { type Descriptor, unitsByMs } from './messages.ts'

/** Overrides kept, because what is worked out of a limit is kept by its identity; a gateway has a few. Beyond, the keeping starts again. */
const keptMax = 1_000
const kept = new Map<string, Limit>()

/** By Envoy's numbers. */
const unitNames = ['', 'second', 'minute', 'hour', 'day', 'month', 'year', 'week']

/** The attribute that says which domain an override was sent in. No entry of a descriptor has this name. */
export const domainAttribute = '_domain'

/**
 * The limit that a descriptor brings along, in the place of what the policy says of it: so many requests per unit of time for its
 * domain and entries. Undefined for a unit that Envoy does not have. Limits of the policy do not begin with `_`.
 */
export function overrideLimit({ entries, limit }: Descriptor): Limit | undefined {
  if (limit === null) return undefined
  const ms = [...unitsByMs].find(([, unit]) => unit === limit.unit)?.[0]
  if (ms === undefined) return undefined
  const keys = [...new Set(entries.map(({ key }) => key))].sort()
  const id = JSON.stringify([ms, limit.requestsPerUnit, ...keys])
  const known = kept.get(id)
  if (known !== undefined) return known
  if (kept.size >= keptMax) kept.clear()
  const made: Limit = {
    ...{
      name: `_override-${unitNames[limit.unit]}`,
      algorithm: 'fixed_window',
      size: limit.requestsPerUnit,
      capacity: limit.requestsPerUnit,
    },
    span: { kind: 'window', ms },
    by: [domainAttribute, ...keys].map((name) => ({ kind: 'attribute', name })),
    ...{
      applies: 'plan',
      mode: 'enforce',
      blockMs: 0,
      lease: 0,
      onUnavailable: 'allow',
      thresholds: [],
      cooldownMs: 0,
    },
  }
  kept.set(id, made)
  return made
}
