import { parseStreamQuery } from '@weir/core/usage/decision-query.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { answerProblem, tooManyStreams } from '../http/problems.ts'
import { problems } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { decisionFilterQuery } from './list-decisions.ts'

const events =
  '`decision` (with the `id` to go on from), `sums` every second, `dropped` where there were more than 200 decisions a second, ' +
  '`gap` where decisions are missing, and a comment every 15 seconds'

/** Where a reader goes on; undefined for one that begins. */
function lastIdOf({ headers }: FastifyRequest): string | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

/** `GET /v1/decisions/stream`: decisions as they are made, as server-sent events. */
export function registerDecisionStream(app: FastifyInstance, { live }: Ports): void {
  app.addHook('preClose', async () => live.close())
  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/v1/decisions/stream',
    {
      config: { scope: 'usage', reach: 'own', isLive: true },
      // A stream has no end that a HEAD could wait for.
      exposeHeadRoute: false,
      schema: {
        tags: ['decisions'],
        summary: 'Decisions as they are made',
        querystring: {
          type: 'object',
          properties: {
            ...decisionFilterQuery,
            of: { type: 'string', enum: ['sums'], description: 'only sums; without it decisions come, too' },
          },
        },
        response: {
          200: {
            description: `Server-sent events: ${events}`,
            // OpenAPI 3.1 has no schema of one event: what is here, readers take for the event's or for the text's.
            content: { 'text/event-stream': { schema: { description: 'server-sent events' } } },
          },
          ...problems(429),
        },
      },
      // The parser below reports everything that is wrong in one answer.
      validatorCompiler: () => () => true,
    },
    async (request, reply) => {
      const { query: given, by, reach } = request
      const parsed = parseStreamQuery(given)
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const { filter, isSumsOnly } = parsed
      if (!reach.covers(filter.only.subject ?? [])) return answerProblem(reply, subjectForbidden(request))
      const refusal = live.refusal(by)
      if (refusal !== undefined) return answerProblem(reply, tooManyStreams(refusal))
      reply.hijack()
      // Not buffered: nginx holds answers back unless it is told not to.
      const headers = {
        'content-type': 'text/event-stream',
        'cache-control': 'private, no-store',
        'x-accel-buffering': 'no',
      }
      reply.raw.writeHead(200, headers)
      const isAllowed = () => request.isStillAllowed()
      const listener = { by, reach, filter, isSumsOnly, lastId: lastIdOf(request), isAllowed }
      live.open(listener, reply.raw)
      return reply
    },
  )
}
