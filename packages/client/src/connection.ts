import { Pool } from 'undici'
import { type Problem, WeirClientError, type WeirClientErrorCode } from './client-error.ts'

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
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
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
      return await Promise.race([ended.promise, this.#send(question, controller.signal)])
    } catch (error) {
      question.signal?.throwIfAborted()
      throw error instanceof WeirClientError ? error : failed(question, error)
    } finally {
      clearTimeout(timer)
      question.signal?.removeEventListener('abort', leave)
    }
  }

  async #send(question: Question, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#once(question, signal)
    } catch (error) {
      // The server may close a keep-alive connection just when it is used. Whether a check without an idempotency key
      // was charged is then unknown.
      if (!question.isRepeatable || !isLost(error) || signal.aborted) throw error
      return this.#once(question, signal)
    }
  }

  async #once({ path, body, isHeld }: Question, signal: AbortSignal): Promise<Answer> {
    const answer = await (isHeld ? this.#heldPool : this.#pool).request({
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

  /** Resolves when the requests in flight are answered. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#heldPool.close()])
  }
}

const timeIsOver = new Error('no answer in time')

const lostCodes: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

const isLost = (error: unknown) => error instanceof Error && 'code' in error && lostCodes.has(error.code)

/** Codes of network errors while the server is unreachable, or this machine has no more sockets. */
const awayCodes: ReadonlySet<unknown> = new Set([
  ...['UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  ...['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...[
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'ENETDOWN',
    'EADDRNOTAVAIL',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EMFILE',
    'ENFILE',
  ],
])
/** Codes of a server that speaks no TLS, or has no certificate that is trusted here. */
const strangerCodes = /^EPROTO$|^ERR_(?:SSL|TLS)_|CERT|SIGNATURE/

/**
 * Returns the error to throw. Frameworks show messages to callers: Weir's address is in `cause` only. An unknown error
 * is a fault, and must not look like an outage, which `allow` lets pass.
 */
function failed({ path, timeoutMs }: Question, error: unknown): unknown {
  const fail = (code: WeirClientErrorCode, why: string) =>
    new WeirClientError(code, `Weir could not be asked for ${path}: ${why}`, { cause: error })
  if (error === timeIsOver) return fail('unavailable', `no answer within ${timeoutMs} ms`)
  if (!(error instanceof Error)) return error
  if (error.name === 'HTTPParserError') return fail('unexpected_answer', 'what answered speaks no HTTP')
  if (!('code' in error)) return error
  const { code } = error
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') {
    return new WeirClientError('closed', 'the client was closed', { cause: error })
  }
  if (awayCodes.has(code)) return fail('unavailable', String(code))
  return strangerCodes.test(String(code)) ? fail('unexpected_answer', String(code)) : error
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
