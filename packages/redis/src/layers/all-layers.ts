import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { createAddressCardinalityLimit } from './address-cardinality-limit.ts'
import { createDenyCache } from './deny-cache.ts'
import { Leasing } from './lease.ts'
import { createLocalFallback, type LocalFallbackOptions } from './local-fallback.ts'

interface LayersOptions extends LocalFallbackOptions {
  /** The longest that the store takes to answer. */
  readonly deadlineMs: number
}

/** The layers before a store, see `createLayers`. */
export type Layers = ReturnType<typeof createLayers>

/**
 * Wraps the store in Redis in all layers. A request meets them in this order: a flood of addresses shares one count, a
 * cached denial is repeated, leased units are spent, and what Redis does not answer is decided in this process.
 */
export function createLayers(inner: LimitStore, options: LayersOptions) {
  const leasing = new Leasing(createLocalFallback(inner, options), { deadlineMs: options.deadlineMs })
  const denials = createDenyCache(leasing)
  const store = createAddressCardinalityLimit(denials)
  return {
    /** What a request meets first. */
    store,
    /** Drops cached denials, after a change of policy or a reset. Leased units and local counts stay. */
    invalidate: () => denials.invalidate(),
    /** Counts since the start, for metrics; only ever growing. */
    get counters() {
      return { leasedUnits: leasing.counters.granted, overflowedAddresses: store.overflowed }
    },
  }
}
