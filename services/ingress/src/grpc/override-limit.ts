import { hash } from 'node:crypto'
import type { Limit } from '@weir/core/limits/limit.ts'
import { type Descriptor, unitsByMs } from './messages.ts'

/**
 * Cached overrides: data computed from a limit is cached by its identity. A gateway has a few; a full cache is emptied.
 */
const keptMax = 1_000
const kept = new Map<string, Limit>()

/** By Envoy's numbers. */
const unitNames = ['', 'second', 'minute', 'hour', 'day', 'month', 'year', 'week']

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
    onUnavailable: 'allow',
    thresholds: [],
    cooldownMs: 0,
  }
  kept.set(id, made)
  return made
}
