import { problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'

/** The methods of the paths that do not take all of them. */
const methodsOf: Readonly<Record<string, string>> = {
  '/v1/check': 'POST',
  '/v1/check/batch': 'POST',
  '/v1/settle': 'POST',
  '/v1/pause': 'POST',
  '/openapi.json': 'GET, HEAD',
}

/** Answers what no route takes: 405 for a path of ours, else 404 with the paths there are. */
export function answerUnrouted(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = Object.hasOwn(methodsOf, path) ? methodsOf[path] : undefined
    if (methods === undefined) {
      const detail = `There is no ${path} here. There is: ${Object.keys(methodsOf).join(', ')}, /v1/authorize`
      return sendProblem(reply, { type: problemType('not-found'), title: 'Not found', status: 404, detail })
    }
    reply.header('allow', methods)
    const detail = `${path} takes ${methods}, not ${request.method}.`
    return sendProblem(reply, {
      type: problemType('method-not-allowed'),
      title: 'Method not allowed',
      status: 405,
      detail,
    })
  })
}
