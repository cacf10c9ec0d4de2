import type { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { createAnonymousFilter } from './address-cardinality-limit.ts'
import { createDenyCache } from './deny-cache.ts'
import { createLeasing } from './lease.ts'
import { createLocalFallback } from './local-fallback.ts'

export interface LayersOptions {
  readonly clock: Clock
  readonly periodBoundaries: typeof periodBoundaries
  /** How many processes share the limits; see process-count.ts. */
  readonly processes: () => number
  /** The longest that the store takes to answer. */
  readonly deadlineMs: number
}

/** Counts since the start, for metrics; only ever growing. */
export interface LayerCounters {
  readonly local: { readonly admitted: number; readonly refused: number }
  readonly lease: { readonly fromMemory: number; readonly calls: number; readonly granted: number }
  readonly refusedFromMemory: number
  readonly overflowedAddresses: number
}

export interface LayeredStore extends LimitStore {
  readonly counters: LayerCounters
  /** After a change of policy or a reset: whoever was just refused is asked about again. Counts held here go on. */
  forget(): void
}

/**
 * Everything that stands between a door and the store in Redis, in its order. From the door: a flood of addresses is gathered
 * under one, who was just refused is refused again, leased units are spent, and what Redis did not answer is decided here.
 */
export function layerStore(inner: LimitStore, options: LayersOptions): LayeredStore {
  const local = createLocalFallback(inner, options)
  const leasing = createLeasing(local, { deadlineMs: options.deadlineMs })
  const denials = createDenyCache(leasing)
  const filter = createAnonymousFilter(denials)
  return {
    decide: (request) => filter.decide(request),
    refund: (request, charge) => filter.refund(request, charge),
    forget: () => denials.forget(),
    get counters() {
      return {
        local: local.counters,
        lease: leasing.counters,
        refusedFromMemory: denials.answered,
        overflowedAddresses: filter.overflowed,
      }
    },
  }
}
