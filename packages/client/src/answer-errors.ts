import { type Problem, WeirClientError, type WeirClientErrorCode } from './client-error.ts'

/** The reason why a call ends that had no answer within its time. */
export const timeIsOver = new Error('no answer in time')

const lostCodes: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/**
 * Whether a connection was lost before its answer, as when the server closes a keep-alive connection just as it is
 * used. Whether a check without an idempotency key was charged is then unknown.
 */
export const isLost = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && lostCodes.has(error.code)

/** Codes of network errors while the server is unreachable, or this machine has no more sockets. */
const awayCodes: ReadonlySet<unknown> = new Set([
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
  'ENFILE',
])
/** Codes of a server that speaks no TLS, or has no certificate that is trusted here. */
const strangerCodes = /^EPROTO$|^ERR_(?:SSL|TLS)_|CERT|SIGNATURE/

/** Returns the error of every call after `close`. */
export const closedError = (cause?: unknown): WeirClientError =>
  new WeirClientError('closed', 'the client was closed', { cause })

/**
 * Returns the error to throw. Frameworks show messages to callers: Weir's address is in `cause` only. An unknown error
 * is a fault, and must not look like an outage, which `allow` lets pass.
 */
export function failed(path: string, timeoutMs: number, error: unknown): unknown {
  const fail = (code: WeirClientErrorCode, why: string) =>
    new WeirClientError(code, `Weir could not be asked for ${path}: ${why}`, { cause: error })
  if (error === timeIsOver) return fail('unavailable', `no response within ${timeoutMs} ms`)
  if (error instanceof WeirClientError || !(error instanceof Error)) return error
  if (error.name === 'HTTPParserError') return fail('unexpected_answer', 'what answered speaks no HTTP')
  if (!('code' in error)) return error
  const { code } = error
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') return closedError(error)
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

/** Returns the error of an answer with a status other than 200; `value` is its body. */
export function refusedBy(path: string, status: number, value: unknown, retryAfter: unknown): WeirClientError {
  const problem = isProblem(value) ? value : undefined
  const code = status >= 500 ? 'unavailable' : (codes.get(status) ?? 'unexpected_answer')
  const seconds = Number(retryAfter)
  return new WeirClientError(code, `Weir answered ${path} with ${status}: ${problem?.detail ?? 'no problem+json'}`, {
    problem,
    retryAfterMs: seconds > 0 ? seconds * 1_000 : undefined,
  })
}

/** Whether a value is a problem by RFC 9457. */
export const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' &&
  value !== null &&
  'type' in value &&
  'detail' in value &&
  typeof value.detail === 'string'

/** Throws the error of an answer that is no JSON (`no JSON`), or other JSON than that of Weir (`other JSON`). */
export function strange(path: string, what: 'no JSON' | 'other JSON'): never {
  throw new WeirClientError(
    'unexpected_answer',
    `${path} answered with ${what}; is the url that of Weir's api listener?`,
  )
}
