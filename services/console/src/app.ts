import { usageRowsMax } from '@weir/clickhouse/usage-queries.ts'
import { parseUsageQuestion } from '@weir/core/usage/usage-question.ts'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { answerErrors, answerUnknownPaths, listenerOptions, problemType, sendProblem } from '@weir/runtime/problem.ts'
import fastify, { type FastifyInstance } from 'fastify'
import type { Ports } from './ports.ts'

/** The token of an `Authorization: Bearer` header; empty if there is none. */
const bearer = (authorization = '') => /^bearer (.+)$/i.exec(authorization)?.[1] ?? ''

/** The usage API. Opens nothing: tests use `inject`. */
export function buildApp(ports: Ports, logger: Logger, adminTokenSha256: string | undefined): FastifyInstance {
  const app: FastifyInstance = fastify(listenerOptions(logger))
  answerErrors(app)
  answerUnknownPaths(app, 'GET /v1/usage')

  const isAdmin = createAdminCheck(adminTokenSha256)
  app.addHook('onRequest', async (request, reply) => {
    if (isAdmin(fingerprint(bearer(request.headers.authorization)))) return
    reply.header('www-authenticate', 'Bearer')
    return sendProblem(reply, {
      type: problemType('unauthorized'),
      title: 'Unauthorized',
      status: 401,
      detail: 'Send the admin token as "Authorization: Bearer TOKEN".',
    })
  })

  app.get<{ Querystring: Record<string, string | string[]> }>('/v1/usage', async (request, reply) => {
    const parsed = parseUsageQuestion(request.query, ports.clock.nowMs())
    if (parsed.kind === 'problems') {
      const detail = parsed.problems.join('; ')
      return sendProblem(reply, { type: problemType('bad-request'), title: 'Bad request', status: 400, detail })
    }
    const { fromMs, toMs, step, timeZone } = parsed.question
    try {
      const rows = await ports.askUsage(parsed.question)
      const from = new Date(fromMs).toISOString()
      const to = new Date(toMs).toISOString()
      return { from, to, step, time_zone: timeZone, cut_off: rows.length >= usageRowsMax, rows }
    } catch (error) {
      request.log.error({ err: error }, 'usage could not be read')
      const detail = 'ClickHouse did not answer. Nothing is lost meanwhile; ask again later.'
      reply.header('retry-after', 5)
      return sendProblem(reply, { type: problemType('usage-unavailable'), title: 'Unavailable', status: 503, detail })
    }
  })
  return app
}
