import { type Dispatcher, Pool } from 'undici'
import { underWayMax } from './profile.ts'
import {
  type AnsweredDecision,
  admissionOf,
  answerDeadlineMs,
  type LoadRequest,
  membersOf,
  refusalOf,
  type Sender,
} from './sender.ts'

const connectMs = 5_000
/** Of an answer's body; a refusal has some hundred bytes, a decision with 16 limits three kilobytes. */
const bodyBytesMax = 65_536

/** A request as it goes over the wire. */
type Written = Pick<Dispatcher.DispatchOptions, 'method' | 'path' | 'headers' | 'body'>

/** How a way over HTTP writes requests and reads answers. */
interface HttpWay {
  write(asked: LoadRequest): Written
  read(status: number, headers: Readonly<Record<string, unknown>>, body: string): AnsweredDecision | undefined
}

/** The name of an error in the words of the operating system. */
const nameOf = (error: Error) => ('code' in error ? String(error.code) : error.name)

/** Asks over HTTP/1.1: as many connections as requests are under way. Follows no redirect. */
export function httpSender(target: URL, way: HttpWay): Sender {
  const pool = new Pool(target.origin, {
    connections: underWayMax,
    pipelining: 1,
    connect: { timeout: connectMs },
    headersTimeout: answerDeadlineMs,
    bodyTimeout: answerDeadlineMs,
  })
  /** What is asked for again is written once. */
  const written = new WeakMap<LoadRequest, Written>()
  const writtenOf = (asked: LoadRequest): Written => {
    const known = written.get(asked) ?? way.write(asked)
    written.set(asked, known)
    return known
  }
  return {
    send(asked, onSent, onAnswer) {
      let headers: Readonly<Record<string, unknown>> = {}
      let status = 0
      let body = ''
      pool.dispatch(writtenOf(asked), {
        onRequestStart: onSent,
        onResponseStart(_, code, found) {
          status = code
          headers = found
        },
        onResponseData(_, chunk) {
          if (body.length < bodyBytesMax) body += chunk.toString('utf8')
        },
        onResponseEnd() {
          const endedMs = performance.now()
          // Apart, because undici takes what is thrown here for the request's failure.
          queueMicrotask(() =>
            onAnswer({ code: String(status), isAnswered: true, endedMs, decision: way.read(status, headers, body) }),
          )
        },
        onResponseError: (_, error) => onAnswer({ code: nameOf(error), isAnswered: false, endedMs: performance.now() }),
      })
    },
    close: () => pool.destroy(),
  }
}

interface CheckAnswer {
  readonly allowed?: boolean
  readonly reason?: string
  readonly denied_by?: string
  readonly limits?: readonly { readonly name: string; readonly reset_ms: number }[]
}

/** `POST /v1/check`, which says times in milliseconds. */
export const checkWay = (token: string): HttpWay => ({
  write({ subject, method, path, cost }) {
    const body = JSON.stringify({ subject, route: `${method} ${path}`, cost })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return { method: 'POST', path: '/v1/check', headers, body }
  },
  read(status, _, body) {
    if (status !== 200) return refusalOf(body)
    const { allowed, reason = '', denied_by: deniedBy = '', limits }: CheckAnswer = membersOf(body)
    if (allowed === undefined || !Array.isArray(limits)) return undefined
    // Redis did not count it.
    const states = reason === 'unavailable' ? [] : limits
    return {
      allowed,
      reason,
      deniedBy,
      unitMs: 1,
      limits: states.map(({ name, reset_ms: resetMs }) => ({ name, resetMs })),
    }
  },
})

/** The request itself, with the key of its subject. What is admitted reaches the upstream. */
export const proxyWay = (keys: ReadonlyMap<string, string>): HttpWay => ({
  write({ subject, method, path }) {
    const hasBody = /^(?:POST|PUT|PATCH)$/.test(method)
    const headers = { 'x-api-key': keys.get(subject) ?? '', ...(hasBody ? { 'content-type': 'application/json' } : {}) }
    return { method, path, headers, ...(hasBody ? { body: '{}' } : {}) }
  },
  read(_status, { ratelimit, 'content-type': type }, body) {
    const isProblem = typeof type === 'string' && type.startsWith('application/problem+json')
    const refusal = isProblem ? refusalOf(body) : undefined
    return refusal ?? (typeof ratelimit === 'string' ? admissionOf(ratelimit) : undefined)
  },
})
