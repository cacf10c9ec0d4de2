import { canResend } from './can-resend.ts'
import type { CheckRequest } from './check-request.ts'
import type { CheckResult } from './check-result.ts'
import type { WeirClient } from './create-client.ts'
import { timerMs } from './duration.ts'
import { retryAfterMs } from './retry-after.ts'
import { refused, type Turn, Turns } from './turns.ts'

type FetchInput = string | URL | Request

/** How calls keep to a limit. Make one such fetch per limit: calls of one line, and its pauses stop all of them. */
export interface LimitedFetchOptions {
  readonly client: WeirClient
  /**
   * What is asked before each call, such as `{ subject: 'github-api' }`. With a subject's own key nothing need be said.
   */
  readonly ask?: Omit<CheckRequest, 'cost' | 'wait' | 'peek' | 'idempotencyKey'> | undefined
  /** Units of a call; what `ask`'s route costs unless given. */
  readonly cost?: number | ((input: FetchInput, init: RequestInit | undefined) => number) | undefined
  /**
   * What a call does when there is no room: `wait` for its turn, the default, or `throw` an error with `retryAfterMs`.
   */
  readonly mode?: 'wait' | 'throw' | undefined
  /** Calls that wait in this process at most; the next throws `queue_full`. 1,000 unless given. */
  readonly queueMax?: number | undefined
  /** How long a call waits in all, repeats included; then it throws `timeout`. 60,000 unless given. */
  readonly timeoutMs?: number | undefined
  /**
   * The limit that is paused in every process when the other side says 429. The first of the subject's limits unless
   * given.
   */
  readonly limit?: string | undefined
  /** The longest pause that the other side can ask for. 3,600,000 unless given. */
  readonly pauseMsMax?: number | undefined
  /** How often a call is sent at most, when the other side answers 429 or 503 with Retry-After. 3 unless given. */
  readonly attemptsMax?: number | undefined
  /** Called when the other processes could not learn of a pause. A warning of the process unless given. */
  readonly onPauseFailed?: ((error: unknown) => void) | undefined
  /** What sends the calls; the global fetch unless given. */
  readonly fetch?: typeof fetch | undefined
}

const defaults = { queueMax: 1_000, timeoutMs: 60_000, pauseMsMax: 3_600_000, attemptsMax: 3 }
/** After a 429 that does not say how long; doubled with every further attempt of the call. */
const unsaidPauseMs = 1_000

/**
 * A fetch for somebody else's API, which asks Weir before every call: all processes that ask for the same subject share
 * its limits. A 429 of the other side (and a 503 with Retry-After) pauses all of them, and the call is sent again if
 * its body can be. Otherwise it behaves as fetch does; a call that redirects is one call.
 */
export function createLimitedFetch(options: LimitedFetchOptions) {
  const { client, ask = {}, cost, mode = 'wait' } = options
  const { queueMax = defaults.queueMax, timeoutMs = defaults.timeoutMs, attemptsMax = defaults.attemptsMax } = options
  timerMs(timeoutMs, 'timeoutMs')
  timerMs(options.pauseMsMax ?? defaults.pauseMsMax, 'pauseMsMax')
  const turns = new Turns(client, queueMax)
  const pauses = new Pauses(options, turns)
  const send = options.fetch ?? loadedFetch()
  let calls = 0

  const admit = (turn: Turn, isSecond: boolean): Promise<CheckResult> =>
    mode === 'wait' ? turns.take(turn, isSecond) : passNow(client, turns, turn)

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
      // What the other side takes is no waiting.
      turn = { ...turn, endsAtMs: turn.endsAtMs + performance.now() - sentAtMs }
      const pauseMs = pauses.askedBy(response, attempt)
      if (pauseMs === undefined) return response
      pauses.begin(pauseMs, admitted)
      const isInTime = performance.now() + pauseMs < turn.endsAtMs
      if (mode === 'throw' || attempt >= attemptsMax || !isInTime || !canResend(input, init)) return response
      await response.body?.cancel()
    }
  }
}

/**
 * The global fetch, loaded now: Node would do it at the first call, and send that tens of milliseconds after it was
 * admitted.
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

/** What the other side says of its own limits. */
class Pauses {
  readonly #options: LimitedFetchOptions
  readonly #turns: Turns

  constructor(options: LimitedFetchOptions, turns: Turns) {
    this.#options = options
    this.#turns = turns
  }

  /** For how long calls should stop, if the answer says so. */
  askedBy({ status, headers }: Response, attempt: number): number | undefined {
    if (status !== 429 && status !== 503) return undefined
    const said = retryAfterMs(headers.get('retry-after'), madeAtMs(headers))
    const unsaid = status === 429 ? unsaidPauseMs * 2 ** (attempt - 1) : undefined
    // A 429 that says 0 would come again at once.
    const pauseMs = said === undefined || said === 0 ? (unsaid ?? said) : said
    return pauseMs === undefined ? undefined : Math.min(pauseMs, this.#options.pauseMsMax ?? defaults.pauseMsMax)
  }

  /** Stops this process at once, and the others by way of Weir. */
  begin(pauseMs: number, { limits }: CheckResult): void {
    this.#turns.pause(pauseMs)
    const { client, ask, limit = limits[0]?.name, onPauseFailed = warn } = this.#options
    // Without a limit there is nothing that the others would ask; Weir is away, or has none for this subject.
    if (limit === undefined || pauseMs === 0) return
    client.pause({ subject: ask?.subject, key: ask?.key, limit, for: pauseMs }).catch(onPauseFailed)
  }
}

/** When the answer was made, by the other side's clock where it says so. */
function madeAtMs(headers: Headers): number {
  const atMs = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(atMs) ? Date.now() : atMs
}

const warn = (error: unknown) =>
  process.emitWarning(`other processes were not told of a pause: ${error instanceof Error ? error.message : error}`, {
    type: 'WeirWarning',
  })
