import { countsInFlight } from './algorithm-facts.ts'
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
const integerMax = 999_999_999_999_999

/** RateLimit-Policy for an unauthenticated caller. */
export const unauthenticatedPolicy = '"unauthenticated";q=0'
/** RateLimit for an unauthenticated caller. */
export const unauthenticatedState = '"unauthenticated";r=0'
const unlimitedPolicy = `"unlimited";q=${integerMax}`
const unlimitedState = `"unlimited";r=${integerMax}`

/**
 * The part that every answer over the same limits shares. Limits in shadow are not shown to callers, nor are those of
 * ancestors: what a company has left is not for each of its members to know.
 */
interface Shown {
  readonly policy: string
  /** RateLimit-Policy as draft 6 has it, `100;w=60`, without the limits that it cannot express; empty for none. */
  readonly olderPolicy: string
  readonly enforced: readonly Limit[]
  readonly hidden: ReadonlySet<string>
  readonly inShadow: ReadonlySet<string>
  /** Names of limits that count requests in flight: when one ends is not known. */
  readonly inFlight: ReadonlySet<string>
}

const shownOf = new WeakMap<readonly Limit[], Shown>()

function shown(limits: readonly Limit[]): Shown {
  const known = shownOf.get(limits)
  if (known !== undefined) return known
  const isShown = ({ mode, level }: Limit) => mode === 'enforce' && level === undefined
  const enforced = limits.filter(isShown)
  const policy = enforced.length === 0 ? unlimitedPolicy : enforced.map(policyItem).join(', ')
  const older = enforced.flatMap((limit) => {
    const { size, span } = limit
    const seconds = countsInFlight(limit) ? undefined : windowSeconds(span)
    return seconds === undefined ? [] : [`${Math.min(size, integerMax)};w=${seconds}`]
  })
  const hidden = new Set(limits.filter((limit) => !isShown(limit)).map(({ name }) => name))
  const inShadow = new Set(limits.filter(({ mode }) => mode === 'shadow').map(({ name }) => name))
  const inFlight = new Set(limits.filter(countsInFlight).map(({ name }) => name))
  const made = { policy, olderPolicy: older.join(', '), enforced, hidden, inShadow, inFlight }
  shownOf.set(limits, made)
  return made
}

/**
 * RateLimit-Policy for the limits of a decision; the same for every answer under one policy. Kept by the array's
 * identity, which `createLimitResolver` keeps.
 */
export const rateLimitPolicy = (limits: readonly Limit[]): string => shown(limits).policy

const visible = ({ limits: states }: Decision, hidden: ReadonlySet<string>) =>
  hidden.size === 0 ? states : states.filter(({ name }) => !hidden.has(name))

/**
 * The states that answers show, those at ancestors too where that is asked. By name: a decision made without Redis may
 * lack some of the limits.
 */
export const shownStates = (decision: Decision, limits: readonly Limit[], showsAbove = false): readonly LimitState[] =>
  visible(decision, showsAbove ? shown(limits).inShadow : shown(limits).hidden)

/** RateLimit for one decision over those limits. */
export function rateLimitState(decision: Decision, limits: readonly Limit[]): string {
  const { hidden, inFlight } = shown(limits)
  const states = visible(decision, hidden)
  if (states.length === 0) return stateUnknown(decision, limits)
  let text = ''
  for (const state of states) {
    const remaining = Math.min(state.remaining, integerMax)
    text += `${text === '' ? '"' : ', "'}${state.name}";r=${remaining}`
    if (!inFlight.has(state.name)) text += `;t=${secondsLeft(decision, state)}`
  }
  return text
}

/** Retry-After of a denial: whole seconds, at least 1. A retry then is allowed if no other request comes first. */
export const retryAfterSeconds = (decision: Decision): number => Math.max(1, wholeSeconds(decision.retryAfterMs))

/**
 * The draft's `t`: seconds until more is to be had. Retry-After must not point to before the `t` of the limit that
 * refused, and a limit that slides gives back long before all of it is unused: so there the two say the same.
 */
function secondsLeft(decision: Decision, { name, resetMs }: LimitState): number {
  const seconds = wholeSeconds(resetMs)
  const refused = !decision.allowed && name === decision.deniedBy && decision.reason !== 'cost_exceeds_limit'
  return refused ? Math.min(seconds, retryAfterSeconds(decision)) : seconds
}

function stateUnknown(decision: Decision, limits: readonly Limit[]): string {
  const { enforced } = shown(limits)
  if (enforced.length === 0 && decision.allowed) return unlimitedState
  const rest = decision.allowed ? 'r=1' : `r=0;t=${retryAfterSeconds(decision)}`
  if (enforced.length === 0) return `"unlimited";${rest}`
  return enforced.map(({ name }) => `"${name}";${rest}`).join(', ')
}

function policyItem(limit: Limit): string {
  const { unit = 'requests', currency } = limit
  const qu = unit === 'requests' ? '' : `;qu="${unit}${currency === undefined ? '' : '-nano'}"`
  const item = `"${limit.name}";q=${Math.min(limit.size, integerMax)}${qu}`
  if (countsInFlight(limit)) return `${item};qu="concurrent-requests"`
  const seconds = windowSeconds(limit.span)
  return seconds === undefined ? item : `${item};w=${seconds}`
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

/**
 * The dialects in which answers describe limits: the two fields of draft 10, one triple of numbers in seconds as drafts
 * up to 6 had it, or the same under the names that came before any draft, with the reset as seconds since the epoch.
 */
export const rateLimitDialects = ['draft10', 'draft6', 'x-ratelimit'] as const
/** One of `rateLimitDialects`. */
export type RateLimitDialect = (typeof rateLimitDialects)[number]

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
  const policy = limits === undefined ? '' : shown(limits).olderPolicy
  const triple = [
    ['ratelimit-limit', `${limit}`],
    ['ratelimit-remaining', `${remaining}`],
    ['ratelimit-reset', `${resetSeconds}`],
  ] as const
  return policy === '' ? triple : [...triple, ['ratelimit-policy', policy]]
}

/**
 * Headers of decisions that an application makes by itself, as names and texts. `{r0}` stands for what is left of the
 * first state that `shownStates` has with those above, `{t0}` for the seconds until it resets, `{e0}` for when.
 */
export function rateLimitTemplates(
  dialect: RateLimitDialect | 'none',
  decision: Decision,
  limits: readonly Limit[],
): readonly (readonly [name: string, text: string])[] {
  if (dialect === 'none') return []
  const all = shownStates(decision, limits, true)
  const states = shownStates(decision, limits).map((state) => ({ ...state, index: all.indexOf(state) }))
  const { policy, olderPolicy } = shown(limits)
  const [tightest] = states.toSorted(byTightness)
  if (dialect === 'draft10') {
    const text =
      tightest === undefined
        ? unlimitedState
        : states.map(({ name, index }) => `"${name}";r={r${index}};t={t${index}}`).join(', ')
    return [
      ['ratelimit-policy', policy],
      ['ratelimit', text],
    ]
  }
  if (tightest === undefined) return []
  const prefix = dialect === 'draft6' ? 'ratelimit' : 'x-ratelimit'
  const reset = dialect === 'draft6' ? `{t${tightest.index}}` : `{e${tightest.index}}`
  const triple = { limit: `${Math.min(tightest.size, integerMax)}`, remaining: `{r${tightest.index}}`, reset }
  const headers = Object.entries(triple).map(([name, text]) => [`${prefix}-${name}`, text] as const)
  return dialect === 'draft6' && olderPolicy !== '' ? [...headers, ['ratelimit-policy', olderPolicy]] : headers
}

/** Of the limit that refused, else of the one with the smallest part left; of equal ones the one that takes longest. */
function tripleOf(decision: Decision, limits: readonly Limit[] | undefined) {
  const waitSeconds = decision.retryAfterMs === 0 ? 0 : retryAfterSeconds(decision)
  if (limits === undefined) return { limit: 0, remaining: 0, resetSeconds: waitSeconds }
  const states = shownStates(decision, limits)
  const tightest = states.find(({ name }) => name === decision.deniedBy) ?? states.toSorted(byTightness)[0]
  if (tightest !== undefined) {
    const { size } = tightest
    const isAbove = shown(limits).hidden.has(decision.deniedBy) // the numbers of the limit that refused are not shown
    const remaining = isAbove ? 0 : tightest.remaining
    const resetSeconds = isAbove ? waitSeconds : secondsLeft(decision, tightest)
    return { limit: Math.min(size, integerMax), remaining: Math.min(remaining, integerMax), resetSeconds }
  }
  const { enforced } = shown(limits)
  const named = enforced.find(({ name }) => name === decision.deniedBy) ?? enforced[0]
  const limit = Math.min(named?.capacity ?? integerMax, integerMax)
  if (!decision.allowed) return { limit, remaining: 0, resetSeconds: waitSeconds }
  // As in draft 10: what is not known admits the next request and promises no more.
  return { limit, remaining: named === undefined ? integerMax : 1, resetSeconds: 0 }
}

const byTightness = (a: LimitState, b: LimitState) =>
  a.remaining / a.size - b.remaining / b.size || b.resetMs - a.resetMs
