import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Charge, LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { LRUCache } from 'lru-cache'

/*
 * Promises: a flood of addresses cannot fill Redis.
 *
 * Callers without a key (subjects that begin with `ip:`) may bring this process a bounded number of new addresses a
 * second. Requests of further addresses share one count, as if they all came from one address. No request is denied
 * because its address is new; it is only subject to a limit that many share. There, a limit by address and header
 * counts by the address alone. A known address can create as many keys as it has values for such a header.
 *
 * Addresses seen lately are known, and have their own counts whatever the flood. An address that was evicted and
 * returns amid a flood may use the shared count in addition to what it had used of its own, and never more than that.
 */

/** A busy public API meets some hundred new addresses a second. At this pace an hour's keys are below a gigabyte. */
const newPerSecondMaxDefault = 1_000
/** New addresses of this many seconds at the full pace are remembered: a known one may pause at least that long. */
const rememberedSeconds = 60
const anonymousPrefix = 'ip:'
/** No address is written like this. */
const overflow = 'overflow'

interface AddressCardinalityOptions {
  /** New addresses a second that get a count of their own, in this process. */
  readonly newPerSecondMax?: number
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

/** Bounds how many counts callers without a key can create in Redis. */
export function createAddressCardinalityLimit(inner: LimitStore, options: AddressCardinalityOptions = {}) {
  const { newPerSecondMax = newPerSecondMaxDefault, monotonicMs = () => performance.now() } = options
  // The bound is also the memory: known addresses are only ever pushed out by newer ones.
  const known = new LRUCache<string, true>({ max: newPerSecondMax * rememberedSeconds })
  /** The request that was decided instead of another, for its refund. */
  const sharedOf = new WeakMap<LimitRequest, LimitRequest>()
  let secondStartMs = Number.NEGATIVE_INFINITY
  let newThisSecond = 0
  let overflowed = 0

  /** A peek makes no key, so it takes nothing from the second's allowance. */
  function passes(subject: string, peek: boolean): boolean {
    if (known.get(subject) !== undefined) return true
    const nowMs = monotonicMs()
    if (nowMs - secondStartMs >= 1_000) {
      secondStartMs = nowMs
      newThisSecond = 0
    }
    if (newThisSecond >= newPerSecondMax) return false
    if (!peek) {
      newThisSecond += 1
      known.set(subject, true)
    }
    return true
  }

  return {
    decide(request: LimitRequest): Promise<Decision> {
      const { subject } = request.scope
      if (!subject.startsWith(anonymousPrefix) || passes(subject, request.peek)) return inner.decide(request)
      overflowed += 1
      // The policy bounds routes and methods; the caller's other values would make more keys, or meet others' markers.
      const { route, method } = request.scope
      const scope = { subject: anonymousPrefix + overflow, keyId: '', ip: overflow, route, method }
      const limits = request.hasOverrides === true ? together(request.limits) : request.limits
      const shared = { ...request, limits, hasOverrides: false, scope, idempotency: undefined }
      sharedOf.set(request, shared)
      return inner.decide(shared)
    },
    /** Finds a request that overflowed only by the very object that was decided. */
    refund: (request: LimitRequest, charge: Charge) => inner.refund(sharedOf.get(request) ?? request, charge),
    /** Requests that were counted under the shared address since the start. */
    get overflowed(): number {
      return overflowed
    },
  }
}

/** Returns each limit once, without its overrides. */
function together(limits: readonly Limit[]): readonly Limit[] {
  const names = new Map(limits.map(({ override: _, ...limit }): [string, Limit] => [limit.name, limit]))
  return [...names.values()]
}
