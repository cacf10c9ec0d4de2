import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { allowed, type Decision, type LimitState } from '@weir/core/limits/decision.ts'
import { blockMsMaxOf, refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { type Charge, checkLimitRequest, type LimitRequest, type LimitStore } from '@weir/core/limits/limit-store.ts'
import { LRUCache } from 'lru-cache'
import { partCharge, type SlotPart, wholeMask } from '../join-parts.ts'
import { limitKey } from '../keys.ts'
import { LeasedUnits, type LeaseSource, type UnitLoan } from './leased-units.ts'

/*
 * Promises: a limit with `lease` is never exceeded over all processes, because every unit that is used was charged in
 * Redis before, and none is used after the window that it was charged in (by this machine's clock; a Redis whose clock
 * is set forward may admit the leases again). What a process took and did not use by then is lost: a lease or two per
 * process and window. While units are left, a request under leased limits alone makes no call at all.
 *
 * Limits without a lease, in the same request, are asked in Redis after the leased ones were reserved in memory; a
 * refusal puts the reserved units back. When memory and Redis together have too little, the whole request is put to
 * Redis as if nothing were leased: that refusal names every limit's state, and Redis is then asked plainly for a
 * second.
 *
 * Of a leased limit a decision says: remaining = what this process holds + what Redis had left when it was last asked;
 * used = size − remaining, so other processes' leases count as used. Its atUs is that of the other limits, or 0.
 *
 * These go to Redis as they are: limits in shadow, limits that degrade, limits with a block or with pauses, requests
 * with an idempotency key or a reservation (their markers are in Redis), and other algorithms than fixed_window. A peek
 * takes no lease; it may find too few units where deciding would still combine pieces.
 */

/** The lease of a subject or an address takes some 200 bytes. An evicted lease loses its units. */
const leasesMaxDefault = 10_000

/** A refund comes when its request ends, and at most some thousand others are in flight then. */
const heldMax = 10_000
/** The deadline of the store in Redis. */
const deadlineMsDefault = 25

/** The deadline of the inner store, and what a test may set. */
export interface LeasingOptions {
  /** The longest that the inner store takes to answer. */
  readonly deadlineMs?: number
  readonly leasesMax?: number
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

/** A count of a subject above has a version of its limit for each level below: each would hold units of its own. */
const mayLease = ({ lease, level }: Limit) => lease > 0 && level === undefined

const isLeased = (limit: Limit) =>
  mayLease(limit) && algorithmFacts[limit.algorithm].resetsAtOnce && refuses(limit) && blockMsMaxOf(limit) === 0

const someLeased = (limits: readonly Limit[]) => limits.some(mayLease)

/** What one request holds of its leased limits, by their position among its limits. */
type HeldUnits = ReadonlyMap<number, UnitLoan>

/** Decides limits with a lease from units that this process took from Redis beforehand. */
export class Leasing implements LimitStore {
  readonly #inner: LimitStore
  readonly #monotonicMs: () => number
  readonly #source: LeaseSource
  readonly #leases: LRUCache<string, LeasedUnits>
  /** Units of the latest requests, for refunds, in two generations; a WeakMap costs a microsecond more. */
  #held = new Map<LimitRequest, HeldUnits>()
  #heldBefore = new Map<LimitRequest, HeldUnits>()
  readonly #counters = { calls: 0, granted: 0 }

  constructor(inner: LimitStore, options: LeasingOptions = {}) {
    this.#inner = inner
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now())
    // A call may be answered this late, and a turn of the event loop may take as long.
    const marginMs = 2 * (options.deadlineMs ?? deadlineMsDefault)
    this.#source = { inner, monotonicMs: this.#monotonicMs, marginMs, counters: this.#counters }
    this.#leases = new LRUCache({ max: options.leasesMax ?? leasesMaxDefault })
  }

  /** Counts since the start, for metrics; only ever growing. `granted` units were charged in Redis, by `calls`. */
  get counters(): { readonly calls: number; readonly granted: number } {
    return { ...this.#counters }
  }

  decide(request: LimitRequest): Promise<Decision> {
    const isPlain =
      request.idempotency === undefined && request.reservation === undefined && request.hasOverrides !== true
    if (!isPlain || !someLeased(request.limits)) return this.#inner.decide(request)
    return this.#decideLeased(request)
  }

  /** Finds a decision from memory only by the very object that was decided, among the latest ten thousand or so. */
  async refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    const held = this.#held.get(request) ?? this.#heldBefore.get(request)
    if (held === undefined) return this.#inner.refund(request, charge)
    this.#held.delete(request)
    this.#heldBefore.delete(request)
    const nowMs = this.#monotonicMs()
    let refunded = false
    for (const taken of held.values()) refunded = taken.putBack(nowMs) || refunded
    const rest = restOf(request, held)
    if (rest.positions.length === 0) return refunded
    return (await this.#inner.refund(rest.request, partCharge(rest, charge))) || refunded
  }

  async #decideLeased(request: LimitRequest): Promise<Decision> {
    checkLimitRequest(request)
    const held = await this.#reserve(request)
    if (held === undefined || held.size === 0) return this.#inner.decide(request)
    if (held.size === request.limits.length) {
      if (!request.peek) this.#remember(request, held)
      const charged = request.peek ? 'no' : 'yes'
      return { ...admitted, charged, limits: [...held.values()].map((taken) => taken.state(this.#monotonicMs())) }
    }
    const rest = restOf(request, held)
    const decision = await this.#inner.decide(rest.request)
    const nowMs = this.#monotonicMs()
    if (!decision.allowed) for (const taken of held.values()) taken.putBack(nowMs)
    else if (!request.peek) this.#remember(request, held)
    return merge(request, held, rest.positions, decision, nowMs)
  }

  #remember(request: LimitRequest, held: HeldUnits): void {
    if (this.#held.size >= heldMax) {
      this.#heldBefore = this.#held
      this.#held = new Map()
    }
    this.#held.set(request, held)
  }

  /** Reserves the cost on every leased limit. Undefined if one has too little: then nothing is reserved. */
  async #reserve(request: LimitRequest): Promise<HeldUnits | undefined> {
    const { limits, cost, peek } = request
    const held = new Map<number, UnitLoan>()
    for (const [at, limit] of limits.entries()) {
      if (!isLeased(limit)) continue
      const lease = this.#leaseOf(limit, request)
      let taken = lease.take(peek ? 0 : cost, peek ? cost : 0, this.#monotonicMs())
      if (taken === undefined && (peek || cost === 0)) continue // asked in Redis with the rest
      if (taken === undefined && cost <= limit.size) {
        const acquired = lease.acquire(cost, request)
        // Nothing is awaited while the lease is exhausted, as in a flood.
        if (acquired !== undefined) taken = await acquired
      }
      if (taken === undefined) {
        for (const other of held.values()) other.putBack(this.#monotonicMs())
        return undefined
      }
      held.set(at, taken)
    }
    return held
  }

  #leaseOf(limit: Limit, { scope }: LimitRequest): LeasedUnits {
    const key = limitKey(limit, scope)
    const known = this.#leases.get(key)
    if (known?.limit === limit) return known
    // Of an edited limit what was taken is lost; it may have another window or size.
    const lease = new LeasedUnits(limit, this.#source)
    this.#leases.set(key, lease)
    return lease
  }
}

const admitted = allowed('ok', { source: 'lease' })

/** The limits of a request that are not held, with their positions among all of its limits. */
function restOf(request: LimitRequest, held: HeldUnits): Pick<SlotPart, 'positions' | 'request'> {
  const positions = [...request.limits.keys()].filter((at) => !held.has(at))
  return { positions, request: { ...request, limits: request.limits.filter((_, at) => !held.has(at)) } }
}

/** Joins the decision over the other limits and the held ones. It stays without states if Redis did not answer. */
function merge(
  { limits }: LimitRequest,
  held: HeldUnits,
  positions: readonly number[],
  decision: Decision,
  nowMs: number,
): Decision {
  const states = decision.limits.values()
  return {
    ...decision,
    exceededMask: wholeMask(decision.exceededMask, positions),
    limits:
      decision.limits.length < positions.length
        ? decision.limits
        : limits.flatMap((_, at): readonly LimitState[] => {
            const state = held.get(at)?.state(nowMs) ?? states.next().value
            return state === undefined ? [] : [state]
          }),
  }
}
