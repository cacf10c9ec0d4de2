import type { Limit } from './limit.ts'

/** Why a decision came out as it did; the `reason` of the record and of the check API. */
export const reasons = [
  'ok',
  'limit',
  'blocked',
  'unauthorized',
  'unavailable',
  'cost_exceeds_limit',
  'journal_full',
] as const
/** One of `reasons`. */
export type Reason = (typeof reasons)[number]

/** Whether Redis charged the request. `unknown`: no answer came in time, so it may or may not have. */
export type Charged = 'yes' | 'no' | 'unknown'

/**
 * Where decisions are made: by Redis; in this process from leased units, from the deny cache or by the local fallback;
 * by `onUnavailable` alone; or without a question to any of them.
 */
export const decisionSources = ['redis', 'lease', 'deny_cache', 'local', 'unavailable', 'none'] as const
/** One of `decisionSources`. */
export type DecisionSource = (typeof decisionSources)[number]

/** One limit as a decision left it. */
export interface LimitState {
  readonly name: string
  /** The limit's capacity: what `used` and `remaining` add up to. */
  readonly size: number
  /** Units used in the current span, this decision's charge included. */
  readonly used: number
  /** Units left, never negative. */
  readonly remaining: number
  /** Milliseconds from the decision until all of the capacity is unused, without further requests. */
  readonly resetMs: number
  /** The ancestor that it counts at, where that is said; absent for the subject itself. */
  readonly at?: string | undefined
}

/** How a person has blocked a caller: its subject is suspended for this reason, or it is blocked for a while. */
export type ByHand = { readonly kind: 'suspended'; readonly reason: string } | { readonly kind: 'blocked' }

/** The outcome of one check. A denial is a value, not an error. */
export interface Decision {
  readonly allowed: boolean
  readonly reason: Reason
  /** A person has blocked the caller. */
  readonly byHand?: ByHand
  /** The name of the first limit that refused; of an allowed one, the first that only degraded it; or empty. */
  readonly deniedBy: string
  /** The limits without capacity, whether they denied or not: bit 0 is the first. 0 when Redis did not answer. */
  readonly exceededMask: number
  /** The name of the first shadow limit that would have refused what was allowed, or empty. */
  readonly shadowedBy: string
  readonly charged: Charged
  /** Time after which these limits would allow the request; 0 when allowed. */
  readonly retryAfterMs: number
  /**
   * Redis's clock when it decided, in microseconds since the epoch; a refund names the charge by it. 0 if it did not.
   */
  readonly atUs: number
  /** For a repeated idempotency key, the id of the first decision; else empty. Nothing was charged again. */
  readonly repeats: string
  /** The first decision was about something else: this one is about nothing, and is not recorded. */
  readonly isOtherQuestion?: true
  /** In the order of the request's limits; empty when Redis did not answer. */
  readonly limits: readonly LimitState[]
  /** Where it was made; absent for Redis. */
  readonly source?: DecisionSource
  /** A denial that may come thousands of times a second: one from memory, or for too many markers. */
  readonly isCached?: boolean
  /**
   * Of an admission without Redis, which may hold its units all the same: to be called where it is denied after all.
   * Resolves as `lateRefund`.
   */
  readonly giveBack?: () => Promise<void>
  /**
   * Of a denial because Redis did not answer in time: resolves once the late reply showed a charge and that charge was
   * refunded. Where nothing was charged, or no reply comes, it stays pending for ever, so nothing may wait for it.
   */
  readonly lateRefund?: Promise<void>
}

/** The fields of a decision that nothing is known about: nothing was charged, and no count was read. */
const unknown = {
  deniedBy: '',
  exceededMask: 0,
  shadowedBy: '',
  charged: 'no',
  retryAfterMs: 0,
  atUs: 0,
  repeats: '',
  limits: [],
} as const

type Details = Partial<Omit<Decision, 'allowed' | 'reason'>>

/** Builds a decision to allow that neither Redis nor a model made; only the `known` fields say anything. */
export const allowed = (reason: Reason, known?: Details): Decision => ({ allowed: true, reason, ...unknown, ...known })

/** Builds a decision to deny that neither Redis nor a model made; only the `known` fields say anything. */
export const denied = (reason: Reason, known?: Details): Decision => ({ allowed: false, reason, ...unknown, ...known })

/**
 * Builds the denial by one limit where Redis was not asked. Nothing is said about the other limits of the request,
 * because their counts are not known.
 */
export const deniedByLimit = (
  reason: 'limit' | 'cost_exceeds_limit',
  limit: Limit,
  { limits }: { readonly limits: readonly Limit[] },
  state: Pick<LimitState, 'used' | 'resetMs'> & { readonly retryAfterMs: number },
): Decision => {
  const { used, resetMs, retryAfterMs } = state
  return denied(reason, {
    deniedBy: limit.name,
    exceededMask: 2 ** limits.indexOf(limit),
    retryAfterMs,
    limits: [{ name: limit.name, size: limit.capacity, used, remaining: 0, resetMs }],
    source: 'none',
    isCached: true,
  })
}
