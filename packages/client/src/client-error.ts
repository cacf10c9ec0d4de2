/** The kind of an error, for programs. packages/client/README.md says for each what to do. */
export type WeirClientErrorCode =
  | 'unauthorized'
  | 'forbidden'
  | 'bad_request'
  | 'throttled'
  | 'conflict'
  | 'not_found'
  | 'unavailable'
  | 'unexpected_answer'
  | 'refused'
  | 'queue_full'
  | 'timeout'
  | 'closed'

/** An error of Weir by RFC 9457; each `type` is listed in its documentation of errors. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly [extension: string]: unknown
}

interface Details {
  readonly problem?: Problem | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/**
 * The error that this library throws, except for the reason of an AbortSignal, which it throws unchanged, and a
 * TypeError for arguments that cannot be meant.
 */
export class WeirClientError extends Error {
  override readonly name = 'WeirClientError'
  readonly code: WeirClientErrorCode
  /** The problem that Weir answered with, if it did. */
  readonly problem: Problem | undefined
  /** An earlier retry would fail; undefined if that is unknown. */
  readonly retryAfterMs: number | undefined
  /** The status that a web framework answers with for an uncaught error: the fault is not the caller's. */
  readonly statusCode: 500 | 503

  constructor(code: WeirClientErrorCode, message: string, { problem, retryAfterMs, cause }: Details = {}) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.problem = problem
    this.retryAfterMs = retryAfterMs
    this.statusCode = code === 'unavailable' || code === 'timeout' || code === 'queue_full' ? 503 : 500
  }
}
