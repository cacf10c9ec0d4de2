import { WeirClientError } from './client-error.ts'

/** One limit as a decision left it. */
export interface LimitState {
  readonly name: string
  readonly size: number
  readonly used: number
  readonly remaining: number
  /** Time until all of the limit is unused, without further requests. */
  readonly resetMs: number
}

/** The reason of an outcome. Later versions of Weir may have more. */
export type Reason =
  | 'ok'
  | 'limit'
  | 'blocked'
  | 'unauthorized'
  | 'unavailable'
  | 'cost_exceeds_limit'
  | 'journal_full'
  | (string & {})

/** What the limit's `onExceed` says about requests beyond it; undefined for a plain denial and if none was exceeded. */
export type OnExceed = 'drop' | 'degrade' | 'challenge' | 'delay' | 'block' | (string & {})

/** What Weir decided. A denial is a result like any other. */
export interface CheckResult {
  readonly allowed: boolean
  readonly reason: Reason
  /** Id of the decision's record; undefined for a peek, and if Weir could not be asked. */
  readonly id: string | undefined
  /** The first limit that denied, or empty. */
  readonly deniedBy: string
  /** Time after which these limits would allow the same check; 0 when allowed. */
  readonly retryAfterMs: number
  readonly onExceed: OnExceed | undefined
  /** The page where a denied client can prove to be a person, if the limit has one. */
  readonly challenge: string | undefined
  /** Why the subject is suspended; absent where it is not. */
  readonly suspended?: string | undefined
  readonly limits: readonly LimitState[]
  /**
   * Headers to pass on with your own answer: `ratelimit`, `ratelimit-policy`, `weir-decision`, and `retry-after` with
   * a denial.
   */
  readonly headers: Readonly<Record<string, string>>
}

type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
const numberOf = (value: unknown) => (typeof value === 'number' ? value : 0)

const limitState = (state: Fields): LimitState => ({
  name: textOf(state.name) ?? '',
  size: numberOf(state.size),
  used: numberOf(state.used),
  remaining: numberOf(state.remaining),
  resetMs: numberOf(state.reset_ms),
})

/** Reads a list of limits; empty for anything else. */
export const limitStatesIn = (value: unknown): readonly LimitState[] =>
  Array.isArray(value) ? value.filter(isFields).map(limitState) : []

/** The headers that describe limits, in whichever dialect the ingress speaks. */
const passedOn = /^(?:x-)?ratelimit(?:-|$)|^weir-decision$/

function headersOf(answer: Fields): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name in answer) {
    const value = answer[name]
    if (!passedOn.test(name)) continue
    if (typeof value === 'string') headers[name] = value
    else if (Array.isArray(value)) headers[name] = value.join(', ')
  }
  return headers
}

/**
 * Reads an answer of the check API; undefined for any other value. Unknown members are left out, so that answers of
 * newer servers are read too.
 */
export function readResult(value: unknown, answer: Fields): CheckResult | undefined {
  if (!isFields(value) || typeof value.allowed !== 'boolean') return undefined
  const { allowed } = value
  const reason = textOf(value.reason) ?? ''
  const retryAfterMs = numberOf(value.retry_after_ms)
  const headers = headersOf(answer)
  const suspended = textOf(value.suspended)
  // Waiting helps neither a wrong key, nor a cost that never fits, nor a suspended subject.
  if (!allowed && suspended === undefined && reason !== 'unauthorized' && reason !== 'cost_exceeds_limit') {
    headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
  }
  return {
    allowed,
    reason,
    retryAfterMs,
    headers,
    id: textOf(value.id),
    deniedBy: textOf(value.denied_by) ?? '',
    onExceed: textOf(value.on_exceed),
    challenge: textOf(value.challenge),
    suspended,
    limits: limitStatesIn(value.limits),
  }
}

/** The problem type by which Weir denies because it cannot record: a denial even if `onUnavailable` is `allow`. */
const unrecordedType = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'

/** Returns the result of a check that Weir decided and could not record; undefined for any other error. */
export function unrecordedResult(error: unknown): CheckResult | undefined {
  if (!(error instanceof WeirClientError) || error.problem?.type !== unrecordedType) return undefined
  const retryAfterMs = error.retryAfterMs ?? unavailableRetryMs
  const headers = { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) }
  return { ...unaskedResult(false), reason: 'journal_full', retryAfterMs, headers }
}

/** An outage may be over in a second; a shorter wait would have every client retry together. */
const unavailableRetryMs = 1_000

const undecided: CheckResult = {
  allowed: false,
  reason: '',
  id: undefined,
  deniedBy: '',
  retryAfterMs: 0,
  onExceed: undefined,
  challenge: undefined,
  limits: [],
  headers: {},
}

/** The result for a key that Weir need not be asked about. */
export const unauthorizedResult: CheckResult = { ...undecided, reason: 'unauthorized' }

/** Builds the result of a check while Weir is unavailable. */
export function unaskedResult(allowed: boolean): CheckResult {
  if (allowed) return { ...undecided, allowed, reason: 'unavailable' }
  const headers = { 'retry-after': String(unavailableRetryMs / 1_000) }
  return { ...undecided, reason: 'unavailable', retryAfterMs: unavailableRetryMs, headers }
}
