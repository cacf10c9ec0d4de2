import { closedError, failed, isLost, isProblem, refusedBy, strange, timeIsOver } from './answer-errors.ts'
import { isFields } from './check-result.ts'
import { type Answer, answerOf, type Connection, type Question, type Reply } from './connection.ts'

/*
 * Checks that need not wait are gathered: those of one turn of the event loop, and those that come while a request is
 * under way, are one batch. Promises:
 *
 * - Every check has its own time and signal. A request is aborted once no check of it is awaited.
 * - A check that comes alone is asked alone.
 * - A batch that is not answered within `patienceMs` holds no other check back.
 * - A connection that is lost repeats only the checks for which this has the effect of asking once, and once.
 */

/** One check that does not wait for capacity. */
export type AskedCheck = Pick<Question, 'body' | 'timeoutMs' | 'isRepeatable' | 'signal'>

/** A request under way. */
interface Sending {
  readonly controller: AbortController
  /** How many of its checks are still awaited. */
  awaited: number
}

/** A check that is awaited. */
interface Waiter extends AskedCheck {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  readonly leave: () => void
  timer: NodeJS.Timeout | undefined
  sending: Sending | undefined
  isOver: boolean
  isRepeated: boolean
}

/** Weir accepts no more in a batch. */
const checksMax = 100
/** Of the checks of a batch. In UTF-8 at most 3 bytes each, so that a batch stays below Weir's 262,144 bytes. */
const charactersMax = 80_000
/**
 * Weir usually answers within a few milliseconds. One of several processes that hangs must not hold up what the others
 * could decide.
 */
const patienceMs = 20
/**
 * So many do not wait for the request under way: Weir decides 32 in one call of its script, and a request of their own
 * costs each of them little.
 */
const enough = 32
/** A server that takes no batches may be replaced by one that does: every minute one batch tries. */
const aloneMs = 60_000

/** Asks checks of one client, together where they come together. */
export class CheckBatches {
  readonly #connection: Connection
  /** Awaited by their callers, each within its time. */
  #waiting: Waiter[] = []
  /** Requests under way for less than `patienceMs`. */
  #fresh = 0
  #isScheduled = false
  /** Until then checks are asked one by one, by `performance.now()`. */
  #aloneUntilMs = 0
  #awaited = 0
  #closing: PromiseWithResolvers<void> | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Returns the answer as `Connection.ask` does. */
  ask(check: AskedCheck): Promise<Answer> {
    if (check.signal?.aborted === true) return Promise.reject(check.signal.reason)
    if (this.#closing !== undefined) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const leave = () => this.#leave(waiter, check.signal?.reason)
      const { timeoutMs, signal } = check
      const waiter: Waiter = {
        ...check,
        resolve,
        reject,
        leave,
        timer: undefined,
        sending: undefined,
        isOver: false,
        isRepeated: false,
      }
      waiter.timer = setTimeout(() => this.#leave(waiter, failed('/v1/check', timeoutMs, timeIsOver)), timeoutMs)
      signal?.addEventListener('abort', leave, { once: true })
      this.#awaited += 1
      this.#waiting.push(waiter)
      this.#schedule()
    })
  }

  /** Resolves when every check is answered; later ones throw `closed`. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers<void>()
    if (this.#awaited === 0) this.#closing.resolve()
    return this.#closing.promise
  }

  /** Sends behind what this turn of the event loop reads. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const isAlone = this.#aloneUntilMs > 0 && performance.now() < this.#aloneUntilMs
      while (this.#waiting.length > 0 && (isAlone || this.#fresh === 0 || this.#waiting.length >= enough)) {
        void this.#send(this.#take(isAlone ? 1 : checksMax))
      }
    })
  }

  #take(max: number): readonly Waiter[] {
    const taken: Waiter[] = []
    let characters = 0
    let at = 0
    for (const waiter of this.#waiting) {
      characters += waiter.body.length
      if (taken.length === max || (taken.length > 0 && characters > charactersMax)) break
      if (!waiter.isOver) taken.push(waiter)
      at += 1
    }
    this.#waiting = this.#waiting.slice(at)
    return taken
  }

  async #send(waiters: readonly Waiter[]): Promise<void> {
    const [first] = waiters
    if (first === undefined) return
    const sending: Sending = { controller: new AbortController(), awaited: waiters.length }
    for (const waiter of waiters) waiter.sending = sending
    let isFresh = true
    const release = () => {
      this.#fresh -= isFresh ? 1 : 0
      isFresh = false
      if (this.#waiting.length > 0) this.#schedule()
    }
    this.#fresh += 1
    const patience = setTimeout(release, patienceMs)
    const { signal } = sending.controller
    try {
      if (waiters.length === 1) {
        const reply = await this.#connection.send({ path: '/v1/check', body: first.body, isHeld: false }, signal)
        this.#answer(first, answerOf('/v1/check', reply))
      } else {
        const body = `{"headers":true,"checks":[${waiters.map((one) => one.body).join()}]}`
        this.#spread(waiters, await this.#connection.send({ path: batchPath, body, isHeld: false }, signal))
      }
    } catch (error) {
      for (const waiter of waiters) this.#fail(waiter, error)
    } finally {
      clearTimeout(patience)
      release()
    }
  }

  /** Gives each check of a batch its result. */
  #spread(waiters: readonly Waiter[], reply: Reply): void {
    // Nothing was decided. A server without batches or their headers, or a gateway that passes on checks alone.
    if (reply.status >= 300 && reply.status < 500 && reply.status !== 401 && reply.status !== 429) {
      this.#aloneUntilMs = performance.now() + aloneMs
      this.#waiting.unshift(...waiters)
      return
    }
    const { value } = answerOf(batchPath, reply)
    const results = isFields(value) && Array.isArray(value.results) ? value.results : []
    if (results.length !== waiters.length) strange(batchPath, 'other JSON')
    waiters.forEach((waiter, at) => {
      const result: unknown = results[at]
      const { problem, headers } = isFields(result) ? result : {}
      const read = isFields(headers) ? headers : {}
      if (isProblem(problem)) this.#fail(waiter, refusedBy('/v1/check', problem.status, problem, read['retry-after']))
      else this.#answer(waiter, { value: result, headers: read })
    })
  }

  #answer(waiter: Waiter, answer: Answer): void {
    if (this.#end(waiter)) waiter.resolve(answer)
  }

  #fail(waiter: Waiter, error: unknown): void {
    if (isLost(error) && waiter.isRepeatable && !waiter.isRepeated && !waiter.isOver) {
      waiter.isRepeated = true
      this.#waiting.push(waiter)
    } else if (this.#end(waiter)) waiter.reject(failed('/v1/check', waiter.timeoutMs, error))
  }

  /** Ends the wait of one caller; the others of its request wait on. */
  #leave(waiter: Waiter, why: unknown): void {
    if (!this.#end(waiter)) return
    waiter.reject(why)
    const { sending } = waiter
    if (sending === undefined) return
    sending.awaited -= 1
    if (sending.awaited === 0) sending.controller.abort()
  }

  /** Returns whether it was awaited until now. */
  #end(waiter: Waiter): boolean {
    if (waiter.isOver) return false
    waiter.isOver = true
    clearTimeout(waiter.timer)
    waiter.signal?.removeEventListener('abort', waiter.leave)
    this.#awaited -= 1
    if (this.#awaited === 0) this.#closing?.resolve()
    return true
  }
}

const batchPath = '/v1/check/batch'
