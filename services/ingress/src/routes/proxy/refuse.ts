import type { ServerResponse } from 'node:http'
import type { Problem } from '@weir/runtime/problem.ts'
import { onExceedOf } from '../../decide/limits/exceeded.ts'
import type { RecordedDecision } from '../../decide/types.ts'
import { challengeHeader, denialProblem, type ReplySettings, setDecisionHeaders } from '../../http/decision-reply.ts'
import { busyRetrySeconds, writeProblem } from './problems.ts'
import type { IncomingRequest } from './proxied-request.ts'

/** Whether the process is stopping; called when the answer is written, because a request may have waited long. */
export type IsClosing = () => boolean

/** Answers a request with a problem, without a decision. */
export function answerProblem(incoming: IncomingRequest, isClosing: IsClosing, problem: Problem): void {
  const headers = startHeaders(incoming, isClosing, true)
  if (problem.status === 503) headers.push('retry-after', `${busyRetrySeconds}`)
  writeProblem(incoming.response, problem, headers)
}

/**
 * Ends a request that was denied and recorded: it is answered, sent to a page for people, or left without an answer.
 */
export function refuse(
  incoming: IncomingRequest,
  isClosing: IsClosing,
  recorded: RecordedDecision,
  settings: ReplySettings,
): void {
  const onExceed = onExceedOf(recorded.decision, recorded.limits)
  if (onExceed?.kind === 'drop') {
    hangUp(incoming.response)
    return
  }
  const headers = startHeaders(incoming, isClosing, true)
  const target = collector(headers)
  setDecisionHeaders(target, recorded, settings)
  if (onExceed?.kind === 'challenge' && isForPage(incoming)) {
    // There is no Retry-After, with which the browser would wait before it goes there.
    headers.push(challengeHeader, onExceed.url, 'location', onExceed.url)
    incoming.response.writeHead(303, [...headers, 'cache-control', 'no-store', 'content-length', '0'])
    incoming.response.end()
    return
  }
  const problem = denialProblem(target, recorded, settings)
  writeProblem(incoming.response, problem, headers)
}

/**
 * Begins Weir's headers of an answer with whether its connection ends. A client that waits for 100 and is refused may
 * send its body or its next request, and the two cannot be told apart.
 */
export function startHeaders(
  { request, protocol }: IncomingRequest,
  isClosing: IsClosing,
  isRefusal: boolean,
): string[] {
  const closes = (isClosing() && protocol === undefined) || (isRefusal && request.headers.expect !== undefined)
  return closes ? ['connection', 'close'] : []
}

/** Collects headers as names and values in turns, which Node writes fastest. */
export function collector(headers: string[]) {
  return {
    header(name: string, value: string | number) {
      headers.push(name, `${value}`)
    },
  }
}

/** Closes the connection without an answer. Answers to requests that were sent before this one go out first. */
function hangUp(response: ServerResponse): void {
  if (response.socket !== null) response.socket.destroy()
  else response.once('socket', (socket) => socket.destroy())
}

/** A browser's request for a page, which can be sent elsewhere; what a script fetches cannot. */
function isForPage({ request: { method, headers }, protocol }: IncomingRequest): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || protocol !== undefined) return false
  return (headers.accept ?? '').split(',').some((one) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/i.test(one))
}
