import { algorithmFacts, countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { type Decision, deniedByLimit, type LimitState } from '@weir/core/limits/decision.ts'
import { countsBeyond, refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import {
  type Charge,
  costOf,
  type LimitRequest,
  type LimitStore,
  type ScopeValues,
} from '@weir/core/limits/limit-store.ts'
import { LRUCache } from 'lru-cache'
import { limitKey } from '../keys.ts'

/*
 * Promises:
 * - A denial by one limit is repeated without Redis for up to a second, and never longer than the denial said. A client
 *   that retries without pause costs Redis one decision a second.
 * - No request is denied that Redis would have allowed at the time of the cached denial. A refund or a raised limit
 *   shows after up to a second, or immediately after `invalidate`.
 *
 * A denial is cached under the limit that denied, so that it serves every caller who shares the limit and has no other.
 * Requests with more limits are answered only if they have the same limits under the same keys. A denial answers
 * requests of the same cost, and under a fixed window, where the wait does not depend on the cost, of larger costs too.
 * These always go to Redis: peeks, requests with an idempotency key (which may have been allowed before), and requests
 * with overrides. A denial by a limit that counts requests in flight is not cached, as one may end at any moment. A
 * limit of size 0 denies without Redis.
 */

/** For up to this long a refund or a reset by another process is not seen. */
const cachedMsMax = 1_000
/** As many callers as are denied within a second and retry; a denial takes about half a kilobyte. */
const denialsMaxDefault = 10_000

interface DenyCacheOptions {
  readonly denialsMax?: number
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

interface Denial {
  readonly decision: Decision
  readonly limit: Limit
  readonly cost: number
  /** The keys of the counts in `decision.limits`. */
  readonly keys: readonly string[]
  readonly answeredMs: number
  readonly endsMs: number
}

/** Answers denials that still hold from memory, without Redis. */
export function createDenyCache(inner: LimitStore, options: DenyCacheOptions = {}) {
  const { denialsMax = denialsMaxDefault, monotonicMs = () => performance.now() } = options
  const denials = new LRUCache<string, Denial>({ max: denialsMax })
  /** How often the cache was invalidated: the answer to a request from before that is not cached. */
  let invalidations = 0

  function find(request: LimitRequest, nowMs: number): Denial | undefined {
    const { limits, scope, idempotency } = request
    if (idempotency !== undefined || limits.some(countsBeyond)) return undefined
    for (const limit of limits) {
      const cost = costOf(limit, request)
      const denialAt = denialKey(limit, limitKey(limit, scope), cost)
      const denial = denials.get(denialAt)
      if (denial === undefined) continue
      if (nowMs >= denial.endsMs) denials.delete(denialAt)
      else if (denial.limit === limit && denial.cost <= cost && fitsAll(request) && isAll(denial, limits, scope)) {
        return denial
      }
    }
    return undefined
  }

  function keep(request: LimitRequest, decision: Decision, askedMs: number): void {
    const limit = refusingAlone(request, decision)
    if (limit === undefined || countsInFlight(limit)) return
    // The time counts from the request: Redis decided later, so the cache never outlasts the denial.
    const endsMs = askedMs + Math.min(cachedMsMax, decision.retryAfterMs)
    const answeredMs = monotonicMs()
    if (answeredMs >= endsMs) return
    const keys = request.limits.map((one) => limitKey(one, request.scope))
    const cost = costOf(limit, request)
    const denialAt = denialKey(limit, limitKey(limit, request.scope), cost)
    const known = denials.get(denialAt)
    if (known !== undefined && known.limit === limit && known.cost < cost && known.endsMs > answeredMs) return
    denials.set(denialAt, { decision, limit, cost, keys, answeredMs, endsMs })
  }

  return {
    decide(request: LimitRequest): Promise<Decision> {
      if (request.peek || request.hasOverrides === true) return inner.decide(request)
      const shut = shutLimit(request)
      if (shut !== undefined) {
        const resetMs = shut.span.kind === 'window' ? shut.span.ms : 0
        const state = { used: 0, resetMs, retryAfterMs: 0 }
        return Promise.resolve({ ...deniedByLimit('cost_exceeds_limit', shut, request, state), source: 'deny_cache' })
      }
      const askedMs = monotonicMs()
      const denial = denials.size === 0 ? undefined : find(request, askedMs)
      if (denial !== undefined) return Promise.resolve(answerAgain(denial, request, askedMs))
      const invalidationsBefore = invalidations
      return inner.decide(request).then((decision) => {
        if (!decision.allowed && invalidationsBefore === invalidations) keep(request, decision, askedMs)
        return decision
      })
    },
    refund: (request: LimitRequest, charge: Charge) => inner.refund(request, charge),
    /** Drops all cached denials, after a reset or a change of policy: the next request of each caller goes to Redis. */
    invalidate(): void {
      invalidations += 1
      denials.clear()
    },
  }
}

/** Returns the enforced limit of size 0, which denies every cost above 0, whatever Redis says. */
function shutLimit(request: LimitRequest): Limit | undefined {
  const { limits, idempotency } = request
  if (idempotency !== undefined) return undefined
  for (const limit of limits) if (limit.size === 0 && refuses(limit) && costOf(limit, request) > 0) return limit
  return undefined
}

/** A key has no blank. */
const denialKey = ({ algorithm }: Limit, key: string, cost: number) =>
  algorithmFacts[algorithm].resetsAtOnce ? key : `${key} ${cost}`

/** If a cost exceeds a capacity, the answer is another: that the request will never be allowed. */
const fitsAll = (request: LimitRequest) =>
  request.limits.every((limit) => !refuses(limit) || costOf(limit, request) <= limit.capacity)

const isSame = ({ keys }: Denial, limits: readonly Limit[], scope: ScopeValues) =>
  limits.length === keys.length && limits.every((one, at) => limitKey(one, scope) === keys[at])

/** Whether the cached wait is the whole wait: another limit of this caller may be used up for longer. */
const isAll = (denial: Denial, limits: readonly Limit[], scope: ScopeValues) =>
  limits.every((one) => one === denial.limit || !refuses(one)) || isSame(denial, limits, scope)

/** Returns the limit that the denial and its wait come from, if there is exactly one. */
function refusingAlone(request: LimitRequest, decision: Decision): Limit | undefined {
  const { limits } = request
  const { reason, exceededMask: bits } = decision
  if ((reason !== 'limit' && reason !== 'blocked') || bits === 0 || (bits & (bits - 1)) !== 0) return undefined
  const at = Math.log2(bits)
  const limit = limits[at]
  // A blocked caller may be over another limit that is not in the mask, and would have to wait for that too.
  const remainingOf = (wanted: string) => decision.limits.find(({ name }) => name === wanted)?.remaining ?? 0
  const othersHaveCapacity = limits.every(
    (one, other) => other === at || !refuses(one) || remainingOf(one.name) >= costOf(one, request),
  )
  return limit !== undefined && refuses(limit) && (reason === 'limit' || othersHaveCapacity) ? limit : undefined
}

/** Returns the cached denial as it stands now. Counts of other callers are left out, because they are not known. */
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
    charged: 'no',
    atUs: 0,
    exceededMask: 2 ** limits.indexOf(limit),
    retryAfterMs: left(decision.retryAfterMs),
    source: 'deny_cache',
    isCached: true,
    limits: known.map((state): LimitState => ({ ...state, resetMs: left(state.resetMs) })),
  }
}
