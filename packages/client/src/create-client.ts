import { strange } from './answer-errors.ts'
import { CheckBatches } from './check-batches.ts'
import { type CheckRequest, checkBody } from './check-request.ts'
import { type CheckResult, isFields, readResult, unaskedResult, unrecordedResult } from './check-result.ts'
import { WeirClientError } from './client-error.ts'
import { type Answer, Connection, heldMax, type Question } from './connection.ts'
import { boundedMs, type Duration, durationMs, durationText, timerMs } from './duration.ts'
import { type LeaseCounters, type LeaseOptions, Leases } from './leases/leases.ts'

/** Weir's address, the client's credential, and what a check results in while Weir does not answer. */
export interface ClientOptions {
  /** The URL of the api listener: `http://weir:8081`. */
  readonly url: string
  /** A token with the scope `check`, which may check any subject, or a subject's own API key. */
  readonly key: string
  /** How long the client waits for an answer, in addition to the `wait` of a check. 1,000 unless given. */
  readonly timeoutMs?: number | undefined
  /**
   * What a check results in when Weir is unreachable, answers 5xx or not in time: an error (`throw`, the default) or a
   * result.
   */
  readonly onUnavailable?: 'allow' | 'deny' | 'throw' | undefined
  /**
   * Whether checks are decided here with units that the client takes ahead, where the policy says so (`clientLease`).
   * Off unless given. Needs a token. An application that is killed leaves what it held charged.
   */
  readonly leases?: LeaseOptions | undefined
}

/** The options of one call. */
export interface CallOptions {
  /** Aborts the call, which throws the signal's reason. A check that waits leaves its queue. */
  readonly signal?: AbortSignal | undefined
  /** Overrides the client's. */
  readonly timeoutMs?: number | undefined
}

/** Stops a limit for one subject. */
export interface PauseRequest {
  /** The subject: give this, or `key`; neither with a subject's own key. */
  readonly subject?: string | undefined
  /** An API key of the subject; for a limit by key, that key. */
  readonly key?: string | undefined
  /** The limit's name. Its `onExceed` must be `delay`. */
  readonly limit: string
  readonly for: Duration
}

/** A decision on a check with `settle`. */
export interface HeldCheck {
  /** The id of the check's result. */
  readonly id: string
  /** The subject of the decision; left out with a subject's own key. */
  readonly subject?: string | undefined
}

/** The real cost of a decision. What is left out stays as it was charged, or held. */
export interface SettleRequest extends HeldCheck {
  readonly cost?: number | undefined
  /** What was really used of each unit. */
  readonly units?: Readonly<Record<string, number>> | undefined
}

/** Asks Weir over keep-alive connections. Make one per process and share it. */
export interface WeirClient {
  /** How long a call waits for its answer unless it has a time-out of its own. */
  readonly timeoutMs: number
  /**
   * Counts since the client was made: leases given (`leased`), checks that were `decided` and `refused` here, leases
   * `returned` in part, and those `lost`, whose unused units stay charged. Undefined without `leases`.
   */
  readonly leases: LeaseCounters | undefined
  /** Decides a check with units that the client took ahead, at once; undefined where `check` has to ask Weir. */
  tryCheck(request?: CheckRequest): CheckResult | undefined
  /** Returns the decision. A denial is a result; errors are WeirClientErrors. */
  check(request?: CheckRequest, options?: CallOptions): Promise<CheckResult>
  /** Makes the limit deny the subject in every process for that time. Never shortens a pause. */
  pause(request: PauseRequest, options?: CallOptions): Promise<{ readonly retryAfterMs: number }>
  /** Replaces what a check with `settle` was charged by its real cost, once; safe to repeat. */
  settle(request: SettleRequest, options?: CallOptions): Promise<{ readonly adjustment: number }>
  /** Gives back all that a check with `settle` holds, as nothing was used; safe to repeat. */
  release(check: HeldCheck, options?: CallOptions): Promise<{ readonly adjustment: number }>
  /** Keeps a check's slots, and its right to be settled, for as long again from now on: at most a day in all. */
  renew(check: HeldCheck, options?: CallOptions): Promise<{ readonly openMs: number }>
  /** Resolves when the calls in flight are answered, and units given back; later calls throw `closed`. */
  close(): Promise<void>
}

const timeoutMsDefault = 1_000

/** Creates a client. It connects when needed. Throws a TypeError for a key or a time that cannot be meant. */
export function createClient(options: ClientOptions): WeirClient {
  const { url, key, timeoutMs = timeoutMsDefault, onUnavailable = 'throw' } = options
  checkKey(key)
  const connection = new Connection(url, key, timerMs(timeoutMs, 'timeoutMs'))
  const batches = new CheckBatches(connection)
  const leases = leasesOf(connection, options.leases)
  let held = 0

  const timeoutOf = ({ timeoutMs: own = timeoutMs }: CallOptions) => timerMs(own, 'timeoutMs')
  const ask = async (path: string, body: string, callOptions: CallOptions, more: Partial<Question> = {}) => {
    const asked = { path, body, isRepeatable: true, isHeld: false, signal: callOptions.signal }
    return connection.ask({ ...asked, timeoutMs: timeoutOf(callOptions), ...more })
  }

  async function askCheck(request: CheckRequest, callOptions: CallOptions): Promise<Answer> {
    const waitMs = durationMs(request.wait ?? 0)
    const isRepeatable = request.idempotencyKey !== undefined || request.peek === true
    // One more would wait for a connection, instead of for its turn in Weir's queue.
    if (waitMs > 0 && held < heldMax) {
      held += 1
      try {
        const heldMs = boundedMs(timeoutOf(callOptions) + waitMs)
        const how = { isRepeatable, isHeld: true, timeoutMs: heldMs }
        return await ask('/v1/check', checkBody(request), callOptions, how)
      } finally {
        held -= 1
      }
    }
    const body = checkBody(waitMs > 0 ? { ...request, wait: undefined } : request)
    return batches.ask({ body, timeoutMs: timeoutOf(callOptions), isRepeatable, signal: callOptions.signal })
  }

  const settled = async (path: string, body: SettleRequest, callOptions: CallOptions) => {
    const { value } = await ask(path, JSON.stringify(body), callOptions)
    return { adjustment: numberIn(value, 'adjustment') ?? strange(path, 'other JSON') }
  }

  return {
    timeoutMs,
    get leases() {
      return leases?.counters
    },
    tryCheck: (request = {}) => leases?.decide(request),
    async check(request = {}, callOptions = {}) {
      const decided = callOptions.signal?.aborted === true ? undefined : leases?.decide(request)
      if (decided !== undefined) return decided
      const note = leases?.askedSingly(request)
      try {
        const result = resultOf(await askCheck(request, callOptions))
        note?.(result)
        return result
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
      return { retryAfterMs: numberIn(value, 'retry_after_ms') ?? strange('/v1/pause', 'other JSON') }
    },
    async settle({ subject, id, cost, units }, callOptions = {}) {
      return await settled('/v1/settle', { subject, id, cost, units }, callOptions)
    },
    async release({ subject, id }, callOptions = {}) {
      return await settled('/v1/release', { subject, id }, callOptions)
    },
    async renew({ subject, id }, callOptions = {}) {
      const { value } = await ask('/v1/renew', JSON.stringify({ subject, id }), callOptions)
      return { openMs: numberIn(value, 'open_ms') ?? strange('/v1/renew', 'other JSON') }
    },
    async close() {
      await batches.close()
      await leases?.close(timeoutMs)
      await connection.close()
    },
  }
}

const resultOf = ({ value, headers }: Answer): CheckResult =>
  readResult(value, headers) ?? strange('/v1/check', 'other JSON')

function leasesOf(connection: Connection, options: LeaseOptions = false): Leases | undefined {
  if (options === false) return undefined
  return new Leases(connection, options === true ? {} : options)
}

/** Throws unless a header can carry the key. A line break at its end, as in files, would make every call fail. */
function checkKey(key: string): void {
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return
  const isEmpty = key === undefined || key === ''
  throw new TypeError(
    isEmpty
      ? 'key is empty: pass a token with the `check` scope, or an API key'
      : 'key has a space, a line break or a character beyond ASCII: is there one at its end?',
  )
}

const isUnavailable = (error: unknown) => error instanceof WeirClientError && error.code === 'unavailable'

function numberIn(value: unknown, name: string): number | undefined {
  const found = isFields(value) ? value[name] : undefined
  return typeof found === 'number' ? found : undefined
}
