import { parseUsageQuestion } from '@weir/core/usage/usage-question.ts'
import { problemType } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerQuestion, questionAnswer, questionQuery } from '../http/answer-question.ts'
import { object, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const rowProperties = {
  ts: text('start of the step, with the offset of its zone; absent for `total`'),
  subject: text('where `by` names it'),
  key_id: text('where `by` names it'),
  plan: text('where `by` names it'),
  route: text('where `by` names it'),
  method: text('where `by` names it'),
  outcome: text('where `by` names it'),
  denied_by: text('where `by` names it'),
  count: text('decisions'),
  allowed: text('decisions'),
  denied: text('decisions'),
  cost: text('units that the allowed ones used, corrections included'),
}
const named = ['ts', 'subject', 'key_id', 'plan', 'route', 'method', 'outcome', 'denied_by']

/** `GET /v1/usage`: who used what and when. */
export function registerUsage(app: FastifyInstance, ports: Ports): void {
  const questions = {
    unavailable: problemType('usage-unavailable'),
    askCompleteness: () => ports.askCompleteness('decisions'),
    askRows: ports.askUsage,
  }
  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/v1/usage',
    {
      config: { scope: 'usage' },
      schema: {
        tags: ['usage'],
        summary: 'Usage, summed',
        querystring: questionQuery,
        response: { 200: questionAnswer('Usage', object(rowProperties, named)), ...problems(503) },
      },
    },
    (request, reply) =>
      answerQuestion(questions, parseUsageQuestion(request.query, ports.clock.nowMs()), request, reply),
  )
}
