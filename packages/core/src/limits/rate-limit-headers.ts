import type { Decision, LimitState } from './decision.ts'
import type { Limit, Span } from './limit.ts'

/*
 * The fields RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10, for every answer. A policy is a
 * limit, by its name; names were checked to need no escaping. What is said where a limit's state is not known:
 *
 * - unauthenticated: a policy of that name with nothing to give;
 * - no limit at all: `unlimited`, with the largest integer the syntax has;
 * - no state, denied (Redis or the journal is unavailable): r=0 until the time to try again, like Retry-After;
 * - no state, allowed: r=1 without a time. The next request may be tried; nothing more is promised.
 */

/** Structured fields (RFC 9651) have integers of at most 15 digits. */
export const integerMax = 999_999_999_999_999

export const unauthenticatedPolicy = '"unauthenticated";q=0'
export const unauthenticatedState = '"unauthenticated";r=0'
const unlimitedPolicy = `"unlimited";q=${integerMax}`
const unlimitedState = `"unlimited";r=${integerMax}`

/** The part that every answer over the same limits shares. Limits in shadow are not shown to callers. */
interface Shown {
  readonly policy: string
  readonly names: readonly string[]
  readonly hidden: ReadonlySet<string>
}

const shownOf = new WeakMap<readonly Limit[], Shown>()

function shown(limits: readonly Limit[]): Shown {
  const known = shownOf.get(limits)
  if (known !== undefined) return known
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const policy = enforced.length === 0 ? unlimitedPolicy : enforced.map(policyItem).join(', ')
  const names = enforced.map(({ name }) => name)
  const hidden = new Set(limits.filter(({ mode }) => mode === 'shadow').map(({ name }) => name))
  const made = { policy, names, hidden }
  shownOf.set(limits, made)
  return made
}

/**
 * RateLimit-Policy for the limits of a decision; the same for every answer under one policy. Kept by the array's
 * identity, which `createLimitResolver` keeps.
 */
export const rateLimitPolicy = (limits: readonly Limit[]): string => shown(limits).policy

/** The states that answers show. By name: a decision made without Redis may lack some of the limits. */
export function shownStates({ limits: states }: Decision, limits: readonly Limit[]): readonly LimitState[] {
  const { hidden } = shown(limits)
  return hidden.size === 0 ? states : states.filter(({ name }) => !hidden.has(name))
}

/** RateLimit for one decision over those limits. */
export function rateLimitState(decision: Decision, limits: readonly Limit[]): string {
  const states = shownStates(decision, limits)
  if (states.length === 0) return stateUnknown(decision, limits)
  let text = ''
  for (const state of states) {
    const remaining = Math.min(state.remaining, integerMax)
    text += `${text === '' ? '"' : ', "'}${state.name}";r=${remaining};t=${secondsLeft(decision, state)}`
  }
  return text
}

/** Retry-After of a denial: whole seconds, at least 1. A retry then is allowed if no other request comes first. */
export const retryAfterSeconds = (decision: Decision): number => Math.max(1, wholeSeconds(decision.retryAfterMs))

/**
 * The draft's `t`: seconds until more is to be had. Retry-After must not point to before the `t` of the limit that
 * refused, and a limit that slides gives back long before all of it is free again: so there the two say the same.
 */
export function secondsLeft(decision: Decision, { name, resetMs }: LimitState): number {
  const seconds = wholeSeconds(resetMs)
  const refused = !decision.allowed && name === decision.deniedBy && decision.reason !== 'cost_exceeds_limit'
  return refused ? Math.min(seconds, retryAfterSeconds(decision)) : seconds
}

function stateUnknown(decision: Decision, limits: readonly Limit[]): string {
  const { names } = shown(limits)
  if (names.length === 0 && decision.allowed) return unlimitedState
  const rest = decision.allowed ? 'r=1' : `r=0;t=${retryAfterSeconds(decision)}`
  if (names.length === 0) return `"unlimited";${rest}`
  return names.map((name) => `"${name}";${rest}`).join(', ')
}

function policyItem({ name, size, span }: Limit): string {
  const seconds = windowSeconds(span)
  return `"${name}";q=${Math.min(size, integerMax)}${seconds === undefined ? '' : `;w=${seconds}`}`
}

/**
 * The draft's `w`, a window in whole seconds. Periods of the calendar have their nominal length (a day with a change of
 * clocks is an hour off, which `t` tells exactly); months differ by days and have none, as have parts of a second.
 */
export function windowSeconds(span: Span): number | undefined {
  if (span.kind === 'window') return span.ms % 1_000 === 0 ? span.ms / 1_000 : undefined
  return nominalSeconds[span.unit]
}

const nominalSeconds = { minute: 60, hour: 3_600, day: 86_400, week: 604_800, month: undefined } as const

const wholeSeconds = (ms: LimitState['resetMs']) => Math.min(Math.max(0, Math.ceil(ms / 1_000)), integerMax)
