import type { Decision, LimitState } from './decision.ts'
import type { Limit, Span } from './limit.ts'

/*
 * The fields RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10, for every answer. A policy is a
 * limit, by its name; names were checked to need no escaping. What is said where a limit's state is not known:
 *
 * - unauthenticated: a policy of that name with nothing to give;
 * - no limit at all: `unlimited`, with the largest integer the syntax has;
 * - no state, denied (Redis or the journal is unavailable): r=0 until the time to try again, like Retry-After;
 * - no state, allowed: r=1 without a time. The next request may be tried; nothing more is promised, and nobody is held back.
 */

/** Structured fields (RFC 9651) have integers of at most 15 digits. */
const integerMax = 999_999_999_999_999

export const unauthenticatedPolicy = '"unauthenticated";q=0'
export const unauthenticatedState = '"unauthenticated";r=0'
const unlimitedPolicy = `"unlimited";q=${integerMax}`
const unlimitedState = `"unlimited";r=${integerMax}`

const policies = new WeakMap<readonly Limit[], string>()

/**
 * RateLimit-Policy for the limits of a decision; the same for every answer under one policy. Kept by the array's
 * identity, which `createLimitResolver` keeps per plan.
 */
export function rateLimitPolicy(limits: readonly Limit[]): string {
  const known = policies.get(limits)
  if (known !== undefined) return known
  const text = limits.length === 0 ? unlimitedPolicy : limits.map(policyItem).join(', ')
  policies.set(limits, text)
  return text
}

/** RateLimit for one decision over those limits. */
export function rateLimitState(decision: Decision, limits: readonly Limit[]): string {
  const states = decision.limits
  if (states.length === 0) return stateUnknown(decision, limits)
  let text = ''
  for (const state of states) {
    const remaining = Math.min(state.remaining, integerMax)
    text += `${text === '' ? '"' : ', "'}${state.name}";r=${remaining};t=${wholeSeconds(state.resetMs)}`
  }
  return text
}

/**
 * Retry-After for a denied decision: whole seconds, at least 1, and never before the `t` of the limit that refused, as
 * the draft asks.
 */
export function retryAfterSeconds(decision: Decision): number {
  let seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  for (const state of decision.limits) {
    if (state.name === decision.deniedBy) seconds = Math.max(seconds, wholeSeconds(state.resetMs))
  }
  return seconds
}

function stateUnknown(decision: Decision, limits: readonly Limit[]): string {
  if (limits.length === 0 && decision.allowed) return unlimitedState
  const rest = decision.allowed ? 'r=1' : `r=0;t=${retryAfterSeconds(decision)}`
  if (limits.length === 0) return `"unlimited";${rest}`
  return limits.map(({ name }) => `"${name}";${rest}`).join(', ')
}

function policyItem({ name, size, span }: Limit): string {
  const seconds = windowSeconds(span)
  return `"${name}";q=${Math.min(size, integerMax)}${seconds === undefined ? '' : `;w=${seconds}`}`
}

/**
 * The draft's `w`, a window in whole seconds. Periods of the calendar have their nominal length (a day with a change of
 * clocks is an hour off, which `t` tells exactly); months differ by days and have none, as have parts of a second.
 */
function windowSeconds(span: Span): number | undefined {
  if (span.kind === 'window') return span.ms % 1_000 === 0 ? span.ms / 1_000 : undefined
  return nominalSeconds[span.unit]
}

const nominalSeconds = { minute: 60, hour: 3_600, day: 86_400, week: 604_800, month: undefined } as const

const wholeSeconds = (ms: LimitState['resetMs']) => Math.min(Math.max(0, Math.ceil(ms / 1_000)), integerMax)
