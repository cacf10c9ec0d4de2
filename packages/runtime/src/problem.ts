import type { FastifyInstance, FastifyReply } from 'fastify'

/** An error as HTTP clients get it, by RFC 9457. Every `type` of ours has a row in docs/errors.md. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** What was wrong with this very request and what to do. */
  readonly detail: string
  readonly [extension: string]: unknown
}

/** Problem types of our own, by the last word of their URN. */
export const problemType = (word: string): string => `urn:weir:problem:${word}`

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json')
    .header('cache-control', 'no-store')
    .send(JSON.stringify(problem))
}

/** Every error that Fastify itself finds (bad JSON, a body too large, an unknown path) as a problem. */
export function useProblems(app: FastifyInstance, paths: string): void {
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, {
      type: problemType('not-found'),
      title: 'Not found',
      status: 404,
      detail: `There is no ${request.method} ${request.url.split('?')[0]} here. There is: ${paths}`,
    }),
  )
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) request.log.error({ err: error, request_id: request.id }, 'request failed')
    const detail = status >= 500 ? `The request could not be served; the log names it as ${request.id}.` : error.message
    const title = status >= 500 ? 'Internal error' : 'Bad request'
    const word = status >= 500 ? 'internal' : 'bad-request'
    return sendProblem(reply, { type: problemType(word), title, status, detail })
  })
}
