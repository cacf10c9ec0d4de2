import { problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'

/** The methods of the paths that do not accept all of them. */
const methodsOf: Readonly<Record<string, string>> = {
  '/v1/check': 'POST',
  '/v1/check/batch': 'POST',
  '/v1/settle': 'POST',
  '/v1/pause': 'POST',
  '/openapi.json': 'GET, HEAD',
}

/** Answers requests that match no route: 405 for a path of the API, else 404 with the paths there are. */
export function answerUnrouted(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = Object.hasOwn(methodsOf, path) ? methodsOf[path] : undefined
    if (methods === undefined) {
      const detail = `There is no ${path} here. There is: ${Object.keys(methodsOf).join(', ')}, /v1/authorize`
      return sendProblem(reply, problem('not-found', 'Not found', 404, detail))
    }
    reply.header('allow', methods)
    const detail = `${path} takes ${methods}, not ${request.method}.`
    return sendProblem(reply, problem('method-not-allowed', 'Method not allowed', 405, detail))
  })
}
