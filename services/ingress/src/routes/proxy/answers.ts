import type { ServerResponse } from 'node:http'
import type { OutcomeError } from '@weir/contracts/outcome.v1.ts'
import { onExceedOf } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import type { RequestMeasure } from '@weir/meters/measure-request.ts'
import type { Route, Upstream } from '@weir/policy/policy.ts'
import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import {
  challengeHeader,
  collector,
  denialProblem,
  type ReplySettings,
  setDecisionHeaders,
} from '../../http/decision-reply.ts'
import { type OwnBody, ownBodyOf, ownRefusalOf, settingsOf, withOwnWords } from '../../http/own-refusal.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { IncomingRequest } from './proxied-request.ts'
import { formOf, type RefusalForm, supplierRefusal } from './supplier-refusal.ts'

const noneForHost = 'The policy has no upstream for this host.'
/** The problem of a host that no upstream answers for. */
export const noUpstream = problem('no-upstream', 'No upstream', 404, noneForHost)

/** Clients try again after this when too many requests wait for an upstream already. */
export const busyRetrySeconds = 1

/** How an upstream failed, in the words of the outcome and of the problem. */
export function upstreamFailure(error: Error & { code?: string }, upstream: Upstream): [OutcomeError, Problem] {
  if (/TIMEOUT|ETIMEDOUT/.test(error.code ?? '')) {
    const detail = `The upstream did not respond within ${upstream.timeoutMs / 1000} s.`
    return ['timeout', problem('upstream-timeout', 'Gateway timeout', 504, detail)]
  }
  const detail = 'The upstream was unreachable or closed the connection.'
  return ['unreachable', problem('upstream-unreachable', 'Bad gateway', 502, detail)]
}

const busy = (why: string) =>
  problem('upstream-busy', 'Upstream busy', 503, `${why}. Try again in ${busyRetrySeconds} s.`)
/** The refusal of a request that finds no slot with its upstream. */
export const upstreamBusy = busy('Too many requests are already waiting for this upstream')
/** The refusal of a body that is read before the decision, while too many of those are. */
export const bodiesBusy = busy('Too many request bodies are already being read for costs and limits')

/** The refusal of a body that is read before the decision, and takes too long. */
export const bodyLate = badRequest('The body took too long to arrive. Send it faster, or in smaller requests.', 408)

/**
 * Answers with a problem and with `headers`, names and values in turns, in a form that the client's program
 * understands; breaks off an answer that has begun.
 */
export function writeProblem(
  response: ServerResponse,
  found: Problem,
  headers: readonly string[],
  form: RefusalForm = {},
): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const waitAt = headers.indexOf('retry-after')
  const own = supplierRefusal(form, found, waitAt < 0 ? undefined : Number(headers[waitAt + 1]))
  const all = own === undefined ? headers : [...headers, 'x-should-retry', `${own.shouldRetry}`]
  writeBody(response, own?.status ?? found.status, all, {
    type: own === undefined ? 'application/problem+json' : 'application/json',
    bytes: Buffer.from(JSON.stringify(own?.body ?? found)),
  })
}

function writeBody(response: ServerResponse, status: number, headers: readonly string[], { type, bytes }: OwnBody) {
  response.writeHead(status, [
    ...headers,
    'content-type',
    type,
    'cache-control',
    'no-store',
    'content-length',
    `${bytes.length}`,
  ])
  response.end(bytes)
}

/** Answers a request with a problem, without a decision. */
export function answerProblem(incoming: IncomingRequest, problem: Problem, form?: RefusalForm): void {
  const headers = startHeaders(incoming, true)
  if (problem.status === 503) headers.push('retry-after', `${busyRetrySeconds}`)
  // Its rest is not waited for.
  if (problem === bodyLate) incoming.response.shouldKeepAlive = false
  writeProblem(incoming.response, problem, headers, form)
}

/**
 * Ends a request that was denied and recorded: with an answer, which may be the policy's own, a page for people, or
 * without an answer.
 */
export function refuse(
  incoming: IncomingRequest,
  recorded: RecordedDecision,
  settings: ReplySettings,
  view: Pick<PolicyView, 'policy' | 'presetOf'>,
  route: Route,
  measure?: RequestMeasure,
): void {
  const own = ownRefusalOf(recorded, route, view.policy)
  const onExceed = onExceedOf(recorded.decision, recorded.limits)
  if (onExceed?.kind === 'drop') {
    hangUp(incoming.response)
    return
  }
  const headers = startHeaders(incoming, true)
  const target = collector(headers)
  setDecisionHeaders(target, recorded, settingsOf(settings, own))
  if (onExceed?.kind === 'challenge' && isForPage(incoming)) {
    // There is no Retry-After, with which the browser would wait before it goes there.
    headers.push(challengeHeader, onExceed.url, 'location', onExceed.url)
    incoming.response.writeHead(303, [...headers, 'cache-control', 'no-store', 'content-length', '0'])
    incoming.response.end()
    return
  }
  const problem = withOwnWords(denialProblem(target, recorded, settings), own)
  for (const [name, value] of Object.entries(own?.setHeaders ?? {})) headers.push(name, value)
  const body = ownBodyOf(recorded, own)
  const form = { ...own, ...formOf(view, incoming.request, route, measure) }
  if (body === undefined) writeProblem(incoming.response, problem, headers, form)
  else writeBody(incoming.response, problem.status, headers, body)
}

/**
 * Begins Weir's headers of an answer: whether its connection ends, and which page may read it. A client that waits for
 * 100 and is refused may send its body or its next request, and the two look the same.
 */
export function startHeaders(
  { request, protocol, isClosing, cors = [] }: IncomingRequest,
  isRefusal: boolean,
): string[] {
  const closes = (isClosing() && protocol === undefined) || (isRefusal && request.headers.expect !== undefined)
  return closes ? ['connection', 'close', ...cors] : [...cors]
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
