import { type CheckRequest, checkBody } from './check-request.ts'
import { type CheckResult, readResult, unaskedResult, unrecordedResult } from './check-result.ts'
import { WeirClientError } from './client-error.ts'
import { type Answer, Connection, heldMax } from './connection.ts'
import { boundedMs, type Duration, durationMs, durationText, timerMs } from './duration.ts'

/** Where Weir is, who asks, and what counts while it does not answer. */
export interface ClientOptions {
  /** Of the api listener: `http://weir:8081`. */
  readonly url: string
  /** A token with the scope `check`, which may ask about anybody, or a subject's own API key. */
  readonly key: string
  /** How long an answer is waited for, beside the `wait` of a check. 1,000 unless given. */
  readonly timeoutMs?: number | undefined
  /**
   * What a check comes to when Weir is away, answers 5xx or not in time: an error (`throw`, the default) or a result.
   */
  readonly onUnavailable?: 'allow' | 'deny' | 'throw' | undefined
}

/** Of one call. */
export interface CallOptions {
  /** Ends the call; its reason is thrown. A check that waits leaves its queue. */
  readonly signal?: AbortSignal | undefined
  /** In place of the client's. */
  readonly timeoutMs?: number | undefined
}

/** Stops a limit for one subject. */
export interface PauseRequest {
  /** This, or `key`; neither with a subject's own key. */
  readonly subject?: string | undefined
  /** An API key of whom it is; of a limit by key, that key. */
  readonly key?: string | undefined
  /** The limit's name. Its `onExceed` must be `delay`. */
  readonly limit: string
  readonly for: Duration
}

/** Says what a decision really cost. */
export interface SettleRequest {
  /** Of the check's result. */
  readonly id: string
  readonly cost: number
  /** Whose decision it is; left out with a subject's own key. */
  readonly subject?: string | undefined
}

/** Asks Weir over kept connections. Make one per process and share it. */
export interface WeirClient {
  /** How long an answer is waited for, where a call does not say otherwise. */
  readonly timeoutMs: number
  /** Whether it is allowed. A refusal is a result; errors are WeirClientErrors. */
  check(request?: CheckRequest, options?: CallOptions): Promise<CheckResult>
  /** Until then the limit refuses the subject in every process. Never shortens a pause. */
  pause(request: PauseRequest, options?: CallOptions): Promise<{ readonly retryAfterMs: number }>
  /** Puts what a check with `settle` really cost in place of what it was charged, once; safe to repeat. */
  settle(request: SettleRequest, options?: CallOptions): Promise<{ readonly adjustment: number }>
  /** Waits for what is under way; later calls throw `closed`. */
  close(): Promise<void>
}

const timeoutMsDefault = 1_000

/** A client. Opens connections when they are needed. A TypeError for a key or a time that cannot be meant. */
export function createClient(options: ClientOptions): WeirClient {
  const { url, key, timeoutMs = timeoutMsDefault, onUnavailable = 'throw' } = options
  checkKey(key)
  const connection = new Connection(url, key, timerMs(timeoutMs, 'timeoutMs'))
  let held = 0

  const timeoutOf = ({ timeoutMs: own = timeoutMs }: CallOptions) => timerMs(own, 'timeoutMs')
  const ask = async (path: string, body: string, callOptions: CallOptions) =>
    connection.ask({
      ...{ path, body, isRepeatable: true, isHeld: false },
      ...{ signal: callOptions.signal, timeoutMs: timeoutOf(callOptions) },
    })

  async function askHeld(request: CheckRequest, callOptions: CallOptions): Promise<Answer> {
    const waitMs = durationMs(request.wait ?? 0)
    // One more would wait for a connection instead of in Weir's queue, where it has a turn.
    const isHeld = waitMs > 0 && held < heldMax
    held += isHeld ? 1 : 0
    try {
      return await connection.ask({
        path: '/v1/check',
        body: checkBody(isHeld ? request : { ...request, wait: undefined }),
        timeoutMs: boundedMs(timeoutOf(callOptions) + (isHeld ? waitMs : 0)),
        isRepeatable: request.idempotencyKey !== undefined || request.peek === true,
        ...{ isHeld, signal: callOptions.signal },
      })
    } finally {
      held -= isHeld ? 1 : 0
    }
  }

  return {
    timeoutMs,
    async check(request = {}, callOptions = {}) {
      try {
        const { value, headers } = await askHeld(request, callOptions)
        return readResult(value, headers) ?? strange('/v1/check')
      } catch (error) {
        const unrecorded = unrecordedResult(error)
        if (unrecorded !== undefined) return unrecorded
        if (onUnavailable === 'throw' || !isUnavailable(error)) throw error
        return unaskedResult(onUnavailable === 'allow')
      }
    },
    async pause({ subject, key: ofKey, limit, for: duration }, callOptions = {}) {
      const body = JSON.stringify({ subject, key: ofKey, limit, for: durationText(duration) })
      const { value } = await ask('/v1/pause', body, callOptions)
      return { retryAfterMs: numberIn(value, 'retry_after_ms') ?? strange('/v1/pause') }
    },
    async settle({ subject, id, cost }, callOptions = {}) {
      const { value } = await ask('/v1/settle', JSON.stringify({ subject, id, cost }), callOptions)
      return { adjustment: numberIn(value, 'adjustment') ?? strange('/v1/settle') }
    },
    close: () => connection.close(),
  }
}

/** As a header carries it. A line break at its end, as files have it, would make every question fail. */
function checkKey(key: string): void {
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return
  const isEmpty = key === undefined || key === ''
  throw new TypeError(
    isEmpty
      ? 'key is empty: give a token with the scope check, or an API key'
      : 'key has a space, a line break or a character beyond ASCII: is there one at its end?',
  )
}

const isUnavailable = (error: unknown) => error instanceof WeirClientError && error.code === 'unavailable'

function numberIn(value: unknown, name: string): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const found: unknown = Object.entries(value).find(([one]) => one === name)?.[1]
  return typeof found === 'number' ? found : undefined
}

function strange(path: string): never {
  throw new WeirClientError(
    'unexpected_answer',
    `${path} answered with other JSON; is the url that of Weir's api listener?`,
  )
}
