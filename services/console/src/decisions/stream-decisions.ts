import { streamDecisions } from '@weir/api/decisions.ts'
import { parseStreamQuery } from '@weir/api/query/decision-query.ts'
import type { GivenParameters } from '@weir/api/query/read-parameters.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { answerProblem, tooManyStreams } from '../http/problems.ts'
import { serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'

/** Where a reader goes on; undefined for one that begins. */
function lastIdOf({ headers }: FastifyRequest): string | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

/** `GET /v1/decisions/stream`: decisions as they are made, as server-sent events. */
export function registerDecisionStream(app: FastifyInstance, { decisions: { live } }: Sources): void {
  app.addHook('preClose', async () => live.close())
  serve(
    app,
    streamDecisions,
    async (request, reply) => {
      const { by, reach } = request
      const parsed = parseStreamQuery(request.query as GivenParameters)
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
    // A stream has no end that a HEAD could wait for.
    { exposeHeadRoute: false },
  )
}
