import type { ServerResponse } from 'node:http'
import type { OutcomeError } from '@weir/contracts/outcome.v1.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import { badRequest, headersTooLarge, type Problem, problemType } from '@weir/runtime/problem.ts'

export { badRequest }

/** All headers of a request: room for a large cookie and a signed token. */
export const headerBytesMax = 32_768
export const tooLarge: Problem = headersTooLarge(headerBytesMax)

export const noUpstream: Problem = {
  type: problemType('no-upstream'),
  title: 'No upstream',
  status: 404,
  detail: 'No upstream of the policy answers for this host.',
}

/** A client is told to come back after this long when too many requests wait for an upstream already. */
export const busyRetrySeconds = 1

/** How an upstream failed, in the words of the outcome and of the problem. */
export function upstreamFailure(error: Error & { code?: string }, upstream: Upstream): [OutcomeError, Problem] {
  if (/TIMEOUT|ETIMEDOUT/.test(error.code ?? '')) {
    const detail = `The upstream gave no answer within ${upstream.timeoutMs / 1000} s.`
    return ['timeout', { type: problemType('upstream-timeout'), title: 'Gateway timeout', status: 504, detail }]
  }
  const detail = 'The upstream could not be reached or broke off.'
  return ['unreachable', { type: problemType('upstream-unreachable'), title: 'Bad gateway', status: 502, detail }]
}

export const upstreamBusy: Problem = {
  type: problemType('upstream-busy'),
  title: 'Upstream busy',
  status: 503,
  detail: `Too many requests wait for this upstream already. Try again in ${busyRetrySeconds} s.`,
}

/** Of bodies that say a request's cost: more are being read than there is room for. */
export const bodiesBusy: Problem = {
  ...upstreamBusy,
  detail: `Too many bodies are being read for what they cost. Try again in ${busyRetrySeconds} s.`,
}

/** Answers with a problem and with `headers`, names and values in turns; breaks off an answer that has begun. */
export function writeProblem(response: ServerResponse, problem: Problem, headers: readonly string[]): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const body = Buffer.from(JSON.stringify(problem))
  response.writeHead(problem.status, [
    ...headers,
    ...['content-type', 'application/problem+json', 'cache-control', 'no-store'],
    ...['content-length', `${body.length}`],
  ])
  response.end(body)
}
