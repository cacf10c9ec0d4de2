import type { Decision, LimitState } from './decision.ts'
import type { Limit } from './limit.ts'
import { integerMax, retryAfterSeconds, secondsLeft, shownStates, windowSeconds } from './rate-limit-headers.ts'

/**
 * The dialects in which answers describe limits: the two fields of draft 10, one triple of numbers in seconds as drafts
 * up to 6 had it, or the same under the names that came before any draft, with the reset as seconds since the epoch.
 */
export const rateLimitDialects = ['draft10', 'draft6', 'x-ratelimit'] as const
export type RateLimitDialect = (typeof rateLimitDialects)[number]

interface Triple {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** Names and values for a decision; `limits` is undefined for an unauthenticated caller. No name has two syntaxes. */
export function olderRateLimitHeaders(
  dialect: Exclude<RateLimitDialect, 'draft10'>,
  decision: Decision,
  limits: readonly Limit[] | undefined,
  nowMs: number,
): readonly (readonly [name: string, value: string])[] {
  const { limit, remaining, resetSeconds } = tripleOf(decision, limits)
  if (dialect === 'x-ratelimit') {
    const epochSeconds = Math.ceil(nowMs / 1_000) + resetSeconds
    return [
      ['x-ratelimit-limit', `${limit}`],
      ['x-ratelimit-remaining', `${remaining}`],
      ['x-ratelimit-reset', `${epochSeconds}`],
    ]
  }
  const policy = limits === undefined ? '' : olderPolicy(limits)
  const triple = [
    ['ratelimit-limit', `${limit}`],
    ['ratelimit-remaining', `${remaining}`],
    ['ratelimit-reset', `${resetSeconds}`],
  ] as const
  return policy === '' ? triple : [...triple, ['ratelimit-policy', policy]]
}

/** Of the limit that refused, else of the one with the smallest part left; of equal ones the one that takes longest. */
function tripleOf(decision: Decision, limits: readonly Limit[] | undefined): Triple {
  const waitSeconds = decision.retryAfterMs === 0 ? 0 : retryAfterSeconds(decision)
  if (limits === undefined) return { limit: 0, remaining: 0, resetSeconds: waitSeconds }
  const states = shownStates(decision, limits)
  const tightest = states.find(({ name }) => name === decision.deniedBy) ?? states.toSorted(byTightness)[0]
  if (tightest !== undefined) {
    const { size, remaining } = tightest
    const resetSeconds = secondsLeft(decision, tightest)
    return { limit: Math.min(size, integerMax), remaining: Math.min(remaining, integerMax), resetSeconds }
  }
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const named = enforced.find(({ name }) => name === decision.deniedBy) ?? enforced[0]
  const limit = Math.min(named?.capacity ?? integerMax, integerMax)
  if (!decision.allowed) return { limit, remaining: 0, resetSeconds: waitSeconds }
  // As in draft 10: what is not known admits the next request and promises no more.
  return { limit, remaining: named === undefined ? integerMax : 1, resetSeconds: 0 }
}

const byTightness = (a: LimitState, b: LimitState) =>
  a.remaining / a.size - b.remaining / b.size || b.resetMs - a.resetMs

const policies = new WeakMap<readonly Limit[], string>()

/** RateLimit-Policy as draft 6 has it, `100;w=60`; limits without a window in whole seconds cannot be said there. */
function olderPolicy(limits: readonly Limit[]): string {
  const known = policies.get(limits)
  if (known !== undefined) return known
  const made = limits
    .flatMap(({ mode, size, span }) => {
      const seconds = windowSeconds(span)
      return mode === 'shadow' || seconds === undefined ? [] : [`${Math.min(size, integerMax)};w=${seconds}`]
    })
    .join(', ')
  policies.set(limits, made)
  return made
}
