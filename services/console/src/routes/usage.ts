import { usageRowsMax } from '@weir/clickhouse/usage-queries.ts'
import { parseUsageQuestion } from '@weir/core/usage/usage-question.ts'
import { problemType } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, badRequest } from '../http/problems.ts'
import { answer, anyObject, object, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const usage = object({
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  step: text('hour, day, …'),
  time_zone: text('of the steps'),
  cut_off: { type: 'boolean', description: 'whether there are more rows than are answered' },
  rows: { type: 'array', items: anyObject },
})
const query = (description: string) => ({ description })

/** `GET /v1/usage`: who used what and when. */
export function registerUsage(app: FastifyInstance, ports: Ports): void {
  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/v1/usage',
    {
      config: { scope: 'usage' },
      schema: {
        tags: ['usage'],
        summary: 'Usage, summed',
        // What is wrong with a question is said by its parser, all at once.
        querystring: {
          type: 'object',
          properties: {
            subject: query('whose'),
            from: query('RFC 3339'),
            to: query('RFC 3339'),
            by: query('columns, separated by commas'),
            step: query('hour, day, …'),
            time_zone: query('IANA'),
          },
        },
        response: { 200: answer('Usage', usage), ...problems(503) },
      },
    },
    async (request, reply) => {
      const parsed = parseUsageQuestion(request.query, ports.clock.nowMs())
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const { fromMs, toMs, step, timeZone } = parsed.question
      try {
        const rows = await ports.askUsage(parsed.question)
        const from = new Date(fromMs).toISOString()
        const to = new Date(toMs).toISOString()
        return { from, to, step, time_zone: timeZone, cut_off: rows.length >= usageRowsMax, rows }
      } catch (error) {
        request.log.error({ err: error }, 'usage could not be read')
        const detail = 'ClickHouse did not answer. Nothing is lost meanwhile; ask again later.'
        return answerProblem(reply, {
          type: problemType('usage-unavailable'),
          title: 'Unavailable',
          status: 503,
          detail,
        })
      }
    },
  )
}
