import type { Decision } from '@weir/core/limits/decision.ts'
import type { Charge, LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { AddressCardinalityLimit } from './address-cardinality-limit.ts'
import { DenyCache } from './deny-cache.ts'
import { Leasing } from './lease.ts'
import { LocalFallback, type LocalFallbackOptions } from './local-fallback.ts'

interface LayersOptions extends LocalFallbackOptions {
  /** The longest that the store takes to answer. */
  readonly deadlineMs: number
}

/**
 * Wraps the store in Redis in all layers. A request meets them in this order: a flood of addresses shares one count, a
 * cached denial is repeated, leased units are spent, and what Redis does not answer is decided in this process.
 */
export class LayeredStore implements LimitStore {
  readonly #local: LocalFallback
  readonly #leasing: Leasing
  readonly #denials: DenyCache
  readonly #addresses: AddressCardinalityLimit

  constructor(inner: LimitStore, options: LayersOptions) {
    this.#local = new LocalFallback(inner, options)
    this.#leasing = new Leasing(this.#local, { deadlineMs: options.deadlineMs })
    this.#denials = new DenyCache(this.#leasing)
    this.#addresses = new AddressCardinalityLimit(this.#denials)
  }

  decide(request: LimitRequest): Promise<Decision> {
    return this.#addresses.decide(request)
  }

  refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    return this.#addresses.refund(request, charge)
  }

  /** Drops cached denials, after a change of policy or a reset. Leased units and local counts stay. */
  invalidate(): void {
    this.#denials.invalidate()
  }

  /** Counts since the start, for metrics; only ever growing. */
  get counters() {
    return { leasedUnits: this.#leasing.counters.granted, overflowedAddresses: this.#addresses.overflowed }
  }
}
