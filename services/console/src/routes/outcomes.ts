import { parseOutcomeQuestion } from '@weir/core/usage/outcome-question.ts'
import { problemType } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerQuestion, questionAnswer, questionQuery } from '../http/answer-question.ts'
import { object, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const quantile = (share: string) => ({
  type: ['number', 'null'],
  description: `milliseconds that ${share} of the answers took at most, within about a hundredth; null: there were none`,
})

const rowProperties = {
  ts: text('start of the step, with the offset of its zone; absent for `total`'),
  subject: text('where `by` names it'),
  route: text('where `by` names it'),
  method: text('where `by` names it'),
  count: text('answers'),
  status_1xx: text('answers'),
  status_2xx: text('answers'),
  status_3xx: text('answers'),
  status_4xx: text('answers; 499 are those whose client was gone before'),
  status_5xx: text('answers'),
  broken: text('answers that did not go out whole'),
  bytes_in: text('of the requests’ bodies'),
  bytes_out: text('of the answers’ bodies'),
  p50_ms: quantile('half'),
  p90_ms: quantile('90 %'),
  p99_ms: quantile('99 %'),
}

/** `GET /v1/outcomes`: how upstreams answered, and how fast. */
export function registerOutcomes(app: FastifyInstance, ports: Ports): void {
  const questions = {
    unavailable: problemType('outcomes-unavailable'),
    askCompleteness: () => ports.askCompleteness('outcomes'),
    askRows: ports.askOutcomes,
  }
  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/v1/outcomes',
    {
      config: { scope: 'usage' },
      schema: {
        tags: ['usage'],
        summary: 'Statuses, latencies and bytes of the answers of upstreams',
        querystring: questionQuery,
        response: {
          200: questionAnswer('Outcomes', object(rowProperties, ['ts', 'subject', 'route', 'method'])),
          ...problems(503),
        },
      },
    },
    (request, reply) =>
      answerQuestion(questions, parseOutcomeQuestion(request.query, ports.clock.nowMs()), request, reply),
  )
}
