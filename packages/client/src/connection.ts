import { Pool } from 'undici'
import { type Problem, WeirClientError, type WeirClientErrorCode } from './client-error.ts'

/** A question to Weir's api listener. */
export interface Question {
  readonly path: string
  readonly body: string
  /** For so long an answer is waited for, a second attempt included. */
  readonly timeoutMs: number
  /** Whether asking twice does the same as asking once. */
  readonly isRepeatable: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly value: unknown
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** Checks that wait hold a connection each. More at once than this queue for one, within their time. */
const connectionsMax = 256

/** Kept connections to one Weir. */
export class Connection {
  readonly #pool: Pool
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>

  constructor(url: string, key: string) {
    const { origin, pathname } = new URL(url)
    this.#pool = new Pool(origin, { connections: connectionsMax })
    this.#base = pathname.replace(/\/$/, '')
    this.#headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  }

  /** The answer to it. Throws the signal's reason, or a WeirClientError: `unavailable` for whatever may pass. */
  async ask(question: Question): Promise<Answer> {
    question.signal?.throwIfAborted()
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(timeIsOver), question.timeoutMs)
    const leave = () => controller.abort(question.signal?.reason)
    question.signal?.addEventListener('abort', leave, { once: true })
    try {
      return await this.#send(question, controller.signal)
    } catch (error) {
      question.signal?.throwIfAborted()
      throw error instanceof WeirClientError ? error : unreachable(question, error)
    } finally {
      clearTimeout(timer)
      question.signal?.removeEventListener('abort', leave)
    }
  }

  async #send(question: Question, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#once(question, signal)
    } catch (error) {
      // The server may close a kept connection just when it is used. What is charged by a check without a key of its own, nobody knows.
      if (!question.isRepeatable || !isLost(error) || signal.aborted) throw error
      return this.#once(question, signal)
    }
  }

  async #once({ path, body }: Question, signal: AbortSignal): Promise<Answer> {
    const answer = await this.#pool.request({
      ...{ method: 'POST', path: `${this.#base}${path}`, body, signal, headers: this.#headers },
    })
    const text = await answer.body.text()
    const value = parse(text)
    if (answer.statusCode !== 200) throw refusedBy(path, answer.statusCode, value, answer.headers['retry-after'])
    if (value === undefined) {
      throw new WeirClientError(
        'unexpected_answer',
        `${path} answered with no JSON; is the url that of Weir's api listener?`,
      )
    }
    return { value, headers: answer.headers }
  }

  /** Waits for what is under way. */
  close(): Promise<void> {
    return this.#pool.close()
  }
}

const timeIsOver = new Error('no answer in time')

const lostCodes: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

const isLost = (error: unknown) => error instanceof Error && 'code' in error && lostCodes.has(error.code)

function unreachable({ path, timeoutMs }: Question, error: unknown): WeirClientError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') {
    return new WeirClientError('closed', 'the client was closed', { cause: error })
  }
  const why = error === timeIsOver ? `no answer within ${timeoutMs} ms` : error instanceof Error ? error.message : error
  return new WeirClientError('unavailable', `Weir could not be asked for ${path}: ${why}`, { cause: error })
}

const codes: ReadonlyMap<number, WeirClientErrorCode> = new Map([
  ...([400, 405, 413, 415, 422] as const).map((status) => [status, 'bad_request'] as const),
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [409, 'conflict'],
  [429, 'throttled'],
])

function refusedBy(path: string, status: number, value: unknown, retryAfter: unknown): WeirClientError {
  const problem = isProblem(value) ? value : undefined
  const code = status >= 500 ? 'unavailable' : (codes.get(status) ?? 'unexpected_answer')
  const seconds = Number(retryAfter)
  return new WeirClientError(code, `Weir answered ${path} with ${status}: ${problem?.detail ?? 'no problem+json'}`, {
    problem,
    retryAfterMs: seconds > 0 ? seconds * 1_000 : undefined,
  })
}

const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' &&
  value !== null &&
  'type' in value &&
  'detail' in value &&
  typeof value.detail === 'string'

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Not from Weir, or not to the end; the caller says so.
  }
}
