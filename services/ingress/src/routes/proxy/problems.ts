import type { ServerResponse } from 'node:http'
import type { OutcomeError } from '@weir/contracts/outcome.v1.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import { badRequest, headersTooLarge, type Problem, problem } from '@weir/runtime/problem.ts'

export { badRequest }

/** All headers of a request: room for a large cookie and a signed token. */
export const headerBytesMax = 32_768
export const tooLarge: Problem = headersTooLarge(headerBytesMax)

const noneForHost = 'No upstream of the policy answers for this host.'
export const noUpstream = problem('no-upstream', 'No upstream', 404, noneForHost)

/** A client is told to come back after this long when too many requests wait for an upstream already. */
export const busyRetrySeconds = 1

/** How an upstream failed, in the words of the outcome and of the problem. */
export function upstreamFailure(error: Error & { code?: string }, upstream: Upstream): [OutcomeError, Problem] {
  if (/TIMEOUT|ETIMEDOUT/.test(error.code ?? '')) {
    const detail = `The upstream gave no answer within ${upstream.timeoutMs / 1000} s.`
    return ['timeout', problem('upstream-timeout', 'Gateway timeout', 504, detail)]
  }
  const detail = 'The upstream could not be reached or broke off.'
  return ['unreachable', problem('upstream-unreachable', 'Bad gateway', 502, detail)]
}

const busy = (why: string) =>
  problem('upstream-busy', 'Upstream busy', 503, `${why}. Try again in ${busyRetrySeconds} s.`)
export const upstreamBusy = busy('Too many requests wait for this upstream already')
/** The refusal of a body that says the request's cost, while too many of those are being read. */
export const bodiesBusy = busy('Too many bodies are being read for what they cost')

/** Answers with a problem and with `headers`, names and values in turns; breaks off an answer that has begun. */
export function writeProblem(response: ServerResponse, found: Problem, headers: readonly string[]): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const body = Buffer.from(JSON.stringify(found))
  response.writeHead(found.status, [
    ...headers,
    ...['content-type', 'application/problem+json', 'cache-control', 'no-store'],
    ...['content-length', `${body.length}`],
  ])
  response.end(body)
}
