import { type Decision, deniedByLimit, type LimitState } from '@weir/core/limits/decision.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Charge, LimitRequest, LimitStore, ScopeValues } from '@weir/core/limits/limit-store.ts'
import { LRUCache } from 'lru-cache'
import { limitKey } from '../keys.ts'

/*
 * Promises: who was just refused by one limit is refused again without Redis, for at most a second and never longer than
 * that refusal said, so a client that hammers costs Redis one decision a second. Nobody is refused who would not have been at
 * the time of the refusal; a refund or a raised limit shows after a second at most, or at once after `forget`.
 *
 * A refusal is kept under the one limit that refused, so that it serves every caller who shares that limit and has no other;
 * for whoever has more limits it answers only the very set that was refused. It answers the same cost, and under a fixed
 * window, where the wait does not depend on the cost, larger ones too. Looking, requests with an idempotency key (which may have
 * been admitted before), and those that ask for several things at once always ask. A limit of size 0 refuses without anybody being asked.
 */

/** A refund or another process's reset goes unseen this long at most. */
const keptMsMax = 1_000
/** Whoever is refused within one second and still hammers; a refusal takes about half a kilobyte. */
const denialsMaxDefault = 10_000

export interface DenyCacheOptions {
  readonly denialsMax?: number
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

export interface DenyCache extends LimitStore {
  /** Refusals given from memory since the start. */
  readonly answered: number
  /** After a reset or a change of policy: the next request of each caller asks again. */
  forget(): void
}

/** Refusals that hold for a while, answered without asking again. */
export const createDenyCache = (inner: LimitStore, options: DenyCacheOptions = {}): DenyCache =>
  new DenyCachingStore(inner, options)

interface Denial {
  readonly decision: Decision
  readonly limit: Limit
  readonly cost: number
  /** Whose counts `decision.limits` are. */
  readonly keys: readonly string[]
  readonly answeredMs: number
  readonly endsMs: number
}

class DenyCachingStore implements DenyCache {
  readonly #inner: LimitStore
  readonly #monotonicMs: () => number
  readonly #denials: LRUCache<string, Denial>
  #answered = 0
  /** How often: an answer that was asked for before is not kept. */
  #forgotten = 0

  constructor(inner: LimitStore, options: DenyCacheOptions) {
    this.#inner = inner
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now())
    this.#denials = new LRUCache({ max: options.denialsMax ?? denialsMaxDefault })
  }

  get answered(): number {
    return this.#answered
  }

  decide(request: LimitRequest): Promise<Decision> {
    if (request.peek || request.hasOverrides === true) return this.#inner.decide(request)
    const shut = shutLimit(request)
    if (shut !== undefined) {
      this.#answered += 1
      const resetMs = shut.span.kind === 'window' ? shut.span.ms : 0
      const state = { used: 0, resetMs, retryAfterMs: 0 }
      return Promise.resolve(deniedByLimit('cost_exceeds_limit', shut, request, state))
    }
    const askedMs = this.#monotonicMs()
    const denial = this.#denials.size === 0 ? undefined : this.#find(request, askedMs)
    if (denial !== undefined) {
      this.#answered += 1
      return Promise.resolve(answerAgain(denial, request, askedMs))
    }
    const forgotten = this.#forgotten
    return this.#inner.decide(request).then((decision) => {
      if (!decision.allowed && forgotten === this.#forgotten) this.#keep(request, decision, askedMs)
      return decision
    })
  }

  refund(request: LimitRequest, charge: Charge): Promise<boolean> {
    return this.#inner.refund(request, charge)
  }

  forget(): void {
    this.#forgotten += 1
    this.#denials.clear()
  }

  #find({ limits, scope, cost, idempotency }: LimitRequest, nowMs: number): Denial | undefined {
    if (idempotency !== undefined) return undefined
    for (const limit of limits) {
      const place = placeOf(limit, limitKey(limit, scope), cost)
      const denial = this.#denials.get(place)
      if (denial === undefined) continue
      if (nowMs >= denial.endsMs) this.#denials.delete(place)
      else if (denial.limit === limit && denial.cost <= cost && fitsAll(limits, cost) && isAll(denial, limits, scope)) {
        return denial
      }
    }
    return undefined
  }

  #keep(request: LimitRequest, decision: Decision, askedMs: number): void {
    const limit = refusingAlone(request, decision)
    if (limit === undefined) return
    // From when it was asked: Redis decided after that, so this never outlasts the refusal.
    const endsMs = askedMs + Math.min(keptMsMax, decision.retryAfterMs)
    const answeredMs = this.#monotonicMs()
    if (answeredMs >= endsMs) return
    const keys = request.limits.map((one) => limitKey(one, request.scope))
    const place = placeOf(limit, limitKey(limit, request.scope), request.cost)
    const known = this.#denials.get(place)
    if (known !== undefined && known.limit === limit && known.cost < request.cost && known.endsMs > answeredMs) return
    this.#denials.set(place, { decision, limit, cost: request.cost, keys, answeredMs, endsMs })
  }
}

/** A limit of size 0 that refuses: whatever costs anything is refused by it for good, so nobody need be asked. */
function shutLimit({ limits, cost, idempotency }: LimitRequest): Limit | undefined {
  if (cost === 0 || idempotency !== undefined) return undefined
  for (const limit of limits) if (limit.size === 0 && refuses(limit)) return limit
  return undefined
}

/** A key has no blank. */
const placeOf = ({ algorithm }: Limit, key: string, cost: number) =>
  algorithm === 'fixed_window' ? key : `${key} ${cost}`

/** Otherwise the answer is another: that the cost can never be admitted. */
const fitsAll = (limits: readonly Limit[], cost: number) =>
  limits.every((limit) => !refuses(limit) || cost <= limit.capacity)

const isSame = ({ keys }: Denial, limits: readonly Limit[], scope: ScopeValues) =>
  limits.length === keys.length && limits.every((one, at) => limitKey(one, scope) === keys[at])

/** Whether the wait is the whole wait: another limit of this caller may be used up for longer than the one that is shared. */
const isAll = (denial: Denial, limits: readonly Limit[], scope: ScopeValues) =>
  limits.every((one) => one === denial.limit || !refuses(one)) || isSame(denial, limits, scope)

/** The one limit that the refusal and its wait come from, if there is just one. */
function refusingAlone({ limits, cost }: LimitRequest, decision: Decision): Limit | undefined {
  const { reason, exceededMask: bits } = decision
  if ((reason !== 'limit' && reason !== 'blocked') || bits === 0 || (bits & (bits - 1)) !== 0) return undefined
  const at = Math.log2(bits)
  const limit = limits[at]
  // Whoever is blocked by one limit may be over another without a bit of its own, and would have to wait for that too.
  const roomOf = (wanted: string) => decision.limits.find(({ name }) => name === wanted)?.remaining ?? 0
  const othersHaveRoom = limits.every((one, other) => other === at || !refuses(one) || roomOf(one.name) >= cost)
  return limit !== undefined && refuses(limit) && (reason === 'limit' || othersHaveRoom) ? limit : undefined
}

/** The refusal as it stands now. What is not known of other callers' counts is left out. */
function answerAgain(denial: Denial, request: LimitRequest, nowMs: number): Decision {
  const { decision, limit, answeredMs } = denial
  const elapsedMs = nowMs - answeredMs
  const left = (ms: number) => Math.max(0, Math.ceil(ms - elapsedMs))
  const { limits, scope } = request
  const known = isSame(denial, limits, scope)
    ? decision.limits
    : decision.limits.filter(({ name }) => name === limit.name)
  return {
    ...decision,
    ...{ charged: 'no', atUs: 0, exceededMask: 2 ** limits.indexOf(limit), retryAfterMs: left(decision.retryAfterMs) },
    isCached: true,
    limits: known.map((state): LimitState => ({ ...state, resetMs: left(state.resetMs) })),
  }
}
