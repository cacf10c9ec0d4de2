import { Pool } from 'undici'
import { failed, isLost, refusedBy, strange, timeIsOver } from './answer-errors.ts'

/** A request to Weir's api listener. */
export interface Question {
  readonly path: string
  readonly body: string
  /** How long to wait for an answer, a second attempt included. */
  readonly timeoutMs: number
  /** Whether sending it twice has the effect of sending it once. */
  readonly isRepeatable: boolean
  /** Whether Weir may hold its answer back for as long as a check waits. */
  readonly isHeld: boolean
  readonly signal?: AbortSignal | undefined
}

/** An answer with status 200. */
export interface Answer {
  readonly value: unknown
  readonly headers: Readonly<Record<string, unknown>>
}

/** An answer with any status; its value is undefined if it is no JSON. */
export interface Reply extends Answer {
  readonly status: number
}

/**
 * Checks that do not wait need few connections. More concurrent ones than this queue for one, within their timeout.
 */
const connectionsMax = 256
/** Checks that wait hold a connection each; a process with more would fill Weir's queues alone. */
export const heldMax = 256

/** Keep-alive connections to one Weir. */
export class Connection {
  readonly #pool: Pool
  /** A pool of its own, so that checks that wait never delay the others. */
  readonly #heldPool: Pool
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>

  /** A connection attempt ends within `connectMs`. */
  constructor(url: string, key: string, connectMs: number) {
    const { origin, pathname } = new URL(url)
    this.#pool = new Pool(origin, { connections: connectionsMax, connect: { timeout: connectMs } })
    this.#heldPool = new Pool(origin, { connections: heldMax, connect: { timeout: connectMs } })
    this.#base = pathname.replace(/\/$/, '')
    this.#headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  }

  /** Returns the answer. Throws the signal's reason, or a WeirClientError: `unavailable` for what is known to pass. */
  async ask(question: Question): Promise<Answer> {
    question.signal?.throwIfAborted()
    const controller = new AbortController()
    // A question that still waits for a connection does not see the controller: the race ends it.
    const ended = Promise.withResolvers<never>()
    const end = (why: unknown) => {
      controller.abort(why)
      ended.reject(why)
    }
    const timer = setTimeout(() => end(timeIsOver), question.timeoutMs)
    const leave = () => end(question.signal?.reason)
    question.signal?.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([ended.promise, this.#askTwice(question, controller.signal)])
    } catch (error) {
      question.signal?.throwIfAborted()
      throw failed(question.path, question.timeoutMs, error)
    } finally {
      clearTimeout(timer)
      question.signal?.removeEventListener('abort', leave)
    }
  }

  async #askTwice(question: Question, signal: AbortSignal): Promise<Answer> {
    const once = async () => answerOf(question.path, await this.send(question, signal))
    try {
      return await once()
    } catch (error) {
      if (!question.isRepeatable || !isLost(error) || signal.aborted) throw error
      return once()
    }
  }

  /** Sends a body once, and returns what answers it. Throws what undici throws. */
  async send({ path, body, isHeld }: Pick<Question, 'path' | 'body' | 'isHeld'>, signal: AbortSignal): Promise<Reply> {
    const answer = await (isHeld ? this.#heldPool : this.#pool).request({
      method: 'POST',
      path: `${this.#base}${path}`,
      body,
      signal,
      headers: this.#headers,
    })
    return { status: answer.statusCode, value: parse(await answer.body.text()), headers: answer.headers }
  }

  /** Resolves when the requests in flight are answered. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#heldPool.close()])
  }
}

/** Returns an answer with status 200 and JSON. Throws the error of any other. */
export function answerOf(path: string, { status, value, headers }: Reply): Answer {
  if (status !== 200) throw refusedBy(path, status, value, headers['retry-after'])
  return value === undefined ? strange(path, 'no JSON') : { value, headers }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Not from Weir, or not to the end; the caller says so.
  }
}
