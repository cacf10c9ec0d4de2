import type { CheckRequest } from './check-request.ts'
import type { CheckResult } from './check-result.ts'
import type { WeirClient } from './create-client.ts'
import { timerMs } from './duration.ts'
import { refused, type Turn, Turns } from './turns.ts'

type FetchInput = string | URL | Request

/** How calls keep to a limit. Make one such fetch per limit: its calls share a queue, and a pause stops all of them. */
export interface LimitedFetchOptions {
  readonly client: WeirClient
  /**
   * The check before each call, such as `{ subject: 'github-api' }`. With a subject's own key it can be left out.
   */
  readonly ask?: Omit<CheckRequest, 'cost' | 'wait' | 'peek' | 'idempotencyKey'> | undefined
  /** Units that a call charges; the cost of `ask`'s route unless given. */
  readonly cost?: number | ((input: FetchInput, init: RequestInit | undefined) => number) | undefined
  /**
   * What a call does without capacity: `wait` for its turn, the default, or `throw` an error with `retryAfterMs`.
   */
  readonly mode?: 'wait' | 'throw' | undefined
  /** Calls that wait in this process at most; the next throws `queue_full`. 1,000 unless given. */
  readonly queueMax?: number | undefined
  /** How long a call waits in all, repeats included; then it throws `timeout`. 60,000 unless given. */
  readonly timeoutMs?: number | undefined
  /**
   * The limit that is paused in every process when the other side answers 429. The first of the subject's limits unless
   * given.
   */
  readonly limit?: string | undefined
  /** The longest pause that the other side can ask for. 3,600,000 unless given. */
  readonly pauseMsMax?: number | undefined
  /** How often a call is sent at most, when the other side answers 429 or 503 with Retry-After. 3 unless given. */
  readonly attemptsMax?: number | undefined
  /** Called when the other processes could not learn of a pause. A warning of the process unless given. */
  readonly onPauseFailed?: ((error: unknown) => void) | undefined
  /** The function that sends the calls; the global fetch unless given. */
  readonly fetch?: typeof fetch | undefined
}

/** After a 429 that does not say how long; doubled with every further attempt of the call. */
const unsaidPauseMs = 1_000

/**
 * Creates a fetch for another party's API, which asks Weir before every call: all processes that ask for the same
 * subject share its limits. A 429 of the other side (and a 503 with Retry-After) pauses all of them, and the call is
 * sent again if its body can be. Otherwise it behaves as fetch does; a call that redirects is one call.
 */
export function createLimitedFetch(options: LimitedFetchOptions) {
  const { client, ask = {}, cost, mode = 'wait', onPauseFailed = warn, fetch: send = loadedFetch() } = options
  const { queueMax = 1_000, timeoutMs = 60_000, pauseMsMax = 3_600_000, attemptsMax = 3 } = options
  timerMs(timeoutMs, 'timeoutMs')
  timerMs(pauseMsMax, 'pauseMsMax')
  const turns = new Turns(client, queueMax)
  let calls = 0

  const admit = (turn: Turn, isSecond: boolean): Promise<CheckResult> =>
    mode === 'wait' ? turns.take(turn, isSecond) : passNow(client, turns, turn)

  /** Stops this process now, and the others by way of Weir. */
  const pause = (pauseMs: number, { limits }: CheckResult) => {
    turns.pause(pauseMs)
    const { limit = limits[0]?.name } = options
    // Without a limit the others would ask for nothing: Weir is unavailable, or has no limit for this subject.
    if (limit === undefined || pauseMs === 0) return
    client.pause({ subject: ask.subject, key: ask.key, limit, for: pauseMs }).catch(onPauseFailed)
  }

  return async function limitedFetch(input: FetchInput, init?: RequestInit): Promise<Response> {
    calls += 1
    let turn: Turn = {
      number: calls,
      request: { ...ask, cost: typeof cost === 'function' ? cost(input, init) : cost },
      endsAtMs: performance.now() + timeoutMs,
      signal: init?.signal ?? (input instanceof Request ? input.signal : undefined),
    }
    for (let attempt = 1; ; attempt += 1) {
      const admitted = await admit(turn, attempt > 1)
      const sentAtMs = performance.now()
      const response = await send(input, init)
      // The time that the other side takes does not count as waiting.
      turn = { ...turn, endsAtMs: turn.endsAtMs + performance.now() - sentAtMs }
      const askedMs = pauseAskedBy(response, attempt)
      if (askedMs === undefined) return response
      const pauseMs = Math.min(askedMs, pauseMsMax)
      pause(pauseMs, admitted)
      const isInTime = performance.now() + pauseMs < turn.endsAtMs
      if (mode === 'throw' || attempt >= attemptsMax || !isInTime || !canResend(input, init)) return response
      await response.body?.cancel()
    }
  }
}

/**
 * Returns the global fetch, loaded now: Node would load it at the first call, and send that tens of milliseconds after
 * it was admitted.
 */
function loadedFetch(): typeof fetch {
  new Request('http://127.0.0.1')
  return fetch
}

async function passNow(client: WeirClient, turns: Turns, { request, signal }: Turn): Promise<CheckResult> {
  const pausedMs = Math.ceil(turns.pausedMs())
  if (pausedMs > 0) throw refused({ reason: 'blocked', deniedBy: '', retryAfterMs: pausedMs })
  const result = await client.check(request, { signal })
  if (!result.allowed) throw refused(result)
  return result
}

/**
 * Returns the milliseconds from `nowMs` that a Retry-After header asks for, in seconds or as a date of HTTP in any of
 * its three forms, which are all GMT. Undefined if it is neither. A time that has passed is 0.
 */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  const text = header?.trim() ?? ''
  // Fractions are against the RFC, and some APIs send them.
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000)
  // A date has a name of a day in front; Date.parse alone would take "-5" for a year.
  const atMs = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text) : Number.NaN
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** Returns for how long calls should stop, if the answer says so. */
function pauseAskedBy({ status, headers }: Response, attempt: number): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const said = retryAfterMs(headers.get('retry-after'), madeAtMs(headers))
  const unsaid = status === 429 ? unsaidPauseMs * 2 ** (attempt - 1) : undefined
  // After a 429 that says 0 the next call would follow without a pause.
  return said === undefined || said === 0 ? (unsaid ?? said) : said
}

/** Returns when the answer was made, by the other side's clock if it has a `Date`. */
function madeAtMs(headers: Headers): number {
  const atMs = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(atMs) ? Date.now() : atMs
}

const warn = (error: unknown) =>
  process.emitWarning(`other processes did not learn of a pause: ${error instanceof Error ? error.message : error}`, {
    type: 'WeirWarning',
  })

/** Whether fetch can be called with the same arguments again: a stream is used up once it was read. */
function canResend(input: FetchInput, init: RequestInit | undefined): boolean {
  const body: unknown = init?.body ?? (input instanceof Request ? input.body : null)
  return (
    body === null ||
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData
  )
}
