import type { CheckRequest } from './check-request.ts'
import type { CheckResult } from './check-result.ts'
import { WeirClientError } from './client-error.ts'
import type { WeirClient } from './create-client.ts'

/** One call that waits for its turn. */
export interface Turn {
  /** Calls go in the order of their numbers; a call that is sent again keeps its number. */
  readonly number: number
  readonly request: CheckRequest
  /** The call's end by `performance.now()`; after it the call fails with `timeout`. */
  readonly endsAtMs: number
  readonly signal: AbortSignal | undefined
}

interface Waiter extends Turn {
  /** Ends its check when it leaves. */
  readonly left: AbortController
  isChecking: boolean
  admit(result: CheckResult): void
  fail(error: unknown): void
}

/** Concurrent checks while there is plenty of capacity: at a millisecond each, thousands of calls a second. */
const concurrentChecksMax = 8
/**
 * With fewer units left, several checks of one process would overtake those of other processes that wait for capacity.
 */
const plenty = 2 * concurrentChecksMax
/** The longest `wait` that Weir accepts. */
const waitMsMax = 60_000
/**
 * A check ends this long before its call, so that `onUnavailable` still applies if Weir does not answer.
 */
const marginMs = 50
/** The shortest pause after a denial: one whose wait had passed when it arrived would otherwise start a busy loop. */
const pauseMsMin = 5

/**
 * A queue of calls that Weir admits one after the other. Only the first call of a process's queue checks, and
 * waits in Weir's queue, which is fair: so processes take turns, however many calls each has queued.
 */
export class Turns {
  readonly #client: WeirClient
  readonly #lengthMax: number
  readonly #queue: Waiter[] = []
  /** How many queued calls may check concurrently: the first alone, unless the last answer left plenty of capacity. */
  #concurrency = 1
  #checking = 0
  #deniedUntilMs = 0
  #pausedUntilMs = 0
  #timer: NodeJS.Timeout | undefined
  /** Older servers do not know `wait`; the call then waits here. */
  #serverWaits = true

  constructor(client: WeirClient, lengthMax: number) {
    this.#client = client
    this.#lengthMax = lengthMax
  }

  /** Admits no call for this time. Never shortens a pause. */
  pause(forMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + forMs)
  }

  /** Returns how long a pause still lasts; 0 without one. */
  pausedMs(): number {
    return Math.max(0, this.#pausedUntilMs - performance.now())
  }

  /**
   * Waits for the turn. Throws `queue_full`, `timeout`, `refused` if waiting does not help, or the signal's reason.
   */
  async take(turn: Turn, isSecond: boolean): Promise<CheckResult> {
    turn.signal?.throwIfAborted()
    if (!isSecond && this.#queue.length >= this.#lengthMax) {
      throw new WeirClientError('queue_full', `${this.#lengthMax} calls are already waiting`)
    }
    const left = new AbortController()
    const { promise, resolve, reject } = Promise.withResolvers<CheckResult>()
    const waiter: Waiter = { ...turn, left, isChecking: false, admit: resolve, fail: reject }
    const giveUp = () => this.#fail(waiter, timedOut())
    const timer = setTimeout(giveUp, Math.max(0, turn.endsAtMs - performance.now()))
    const abort = () => this.#fail(waiter, turn.signal?.reason)
    turn.signal?.addEventListener('abort', abort, { once: true })
    this.#queue.splice(this.#placeOf(turn), 0, waiter)
    this.#startChecks()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      turn.signal?.removeEventListener('abort', abort)
    }
  }

  #placeOf({ number }: Turn): number {
    const after = this.#queue.findIndex((one) => one.number > number)
    return after === -1 ? this.#queue.length : after
  }

  #leave(waiter: Waiter): void {
    const at = this.#queue.indexOf(waiter)
    if (at !== -1) this.#queue.splice(at, 1)
  }

  #fail(waiter: Waiter, error: unknown): void {
    this.#leave(waiter)
    waiter.fail(error)
    waiter.left.abort(error)
    this.#startChecks()
  }

  /** Starts a check for every call that may have one. Called whenever that may have changed. */
  #startChecks(): void {
    clearTimeout(this.#timer)
    if (this.#queue.length === 0) return
    const idleMs = Math.max(this.#deniedUntilMs, this.#pausedUntilMs) - performance.now()
    if (idleMs > 0) {
      this.#timer = setTimeout(() => this.#startChecks(), Math.ceil(idleMs))
      return
    }
    for (const waiter of this.#queue) {
      if (this.#checking >= this.#concurrency) return
      if (!waiter.isChecking) void this.#check(waiter)
    }
  }

  async #check(waiter: Waiter): Promise<void> {
    waiter.isChecking = true
    this.#checking += 1
    const leftMs = waiter.endsAtMs - performance.now()
    const timeoutMs = Math.max(1, Math.min(this.#client.timeoutMs, leftMs / 2))
    const roomMs = Math.max(1, leftMs - timeoutMs - marginMs)
    const waitMs = waiter === this.#queue[0] && this.#serverWaits ? Math.min(roomMs, waitMsMax) : 0
    try {
      const wait = waitMs === 0 ? {} : { wait: Math.ceil(waitMs) }
      const options = { signal: waiter.left.signal, timeoutMs }
      this.#onResult(waiter, await this.#client.check({ ...waiter.request, ...wait }, options), waitMs)
    } catch (error) {
      // Perhaps only `wait` is unknown. If the check is refused without it too, it is the check that is wrong.
      const isMalformed = error instanceof WeirClientError && error.code === 'bad_request'
      if (isMalformed) this.#serverWaits = waitMs === 0
      if (!isMalformed || waitMs === 0) this.#fail(waiter, error)
    } finally {
      waiter.isChecking = false
      this.#checking -= 1
      this.#startChecks()
    }
  }

  #onResult(waiter: Waiter, result: CheckResult, waitedMs: number): void {
    if (result.allowed) {
      this.#concurrency = hasPlenty(result) ? concurrentChecksMax : 1
      // A call that was admitted just before the pause is checked again after it: sent then, it would exceed the limit.
      if (this.pausedMs() > 0) return
      this.#leave(waiter)
      waiter.admit(result)
      return
    }
    this.#concurrency = 1
    const { reason, retryAfterMs } = result
    if (reason === 'cost_exceeds_limit' || reason === 'unauthorized') {
      this.#fail(waiter, refused(result))
    } else if (performance.now() + retryAfterMs >= waiter.endsAtMs) {
      this.#fail(waiter, timedOut(retryAfterMs))
    } else if (waitedMs > 0 || !this.#serverWaits) {
      this.#deniedUntilMs = performance.now() + Math.max(pauseMsMin, retryAfterMs)
    }
  }
}

/** Whether an admission leaves so much capacity that no call can be waiting for capacity. */
const hasPlenty = ({ limits }: CheckResult) => limits.every(({ remaining }) => remaining >= plenty)

/** Returns a denial as an error, for callers that do not wait. */
export const refused = ({
  reason,
  deniedBy,
  retryAfterMs,
}: Pick<CheckResult, 'reason' | 'deniedBy' | 'retryAfterMs'>) =>
  new WeirClientError('refused', `refused by the limit ${deniedBy === '' ? '(none)' : deniedBy}: ${reason}`, {
    retryAfterMs,
  })

const timedOut = (retryAfterMs?: number) =>
  new WeirClientError('timeout', 'the turn did not come in time', { retryAfterMs })
