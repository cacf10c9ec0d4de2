import { pageMsMax, QuestionBoundMet, streamRowsMax } from '@weir/clickhouse/question-bounds.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerProblem } from './problems.ts'

const questionTooLarge = problem(
  'question-too-large',
  'The question is too large',
  422,
  `The answer has more than ${streamRowsMax} rows, or reads too much. Ask for a shorter span, a longer step or fewer columns in \`by\`.`,
)
const questionTimedOut = (msMax: number) =>
  problem(
    'question-timed-out',
    'The question took too long',
    504,
    `ClickHouse did not answer within ${msMax / 1_000} seconds. Ask for a shorter span, or a longer step.`,
  )

/** Returns why a question has no answer: it met one of its bounds, or ClickHouse does not answer. */
export function questionFailure(
  error: unknown,
  { msMax, isLate = false, unavailable }: { readonly msMax: number; readonly isLate?: boolean; unavailable: Problem },
): Problem {
  const bound = error instanceof QuestionBoundMet ? error.bound : undefined
  if (isLate || bound === 'timed-out') return questionTimedOut(msMax)
  return bound === 'too-large' ? questionTooLarge : unavailable
}

/**
 * Wraps a handler whose servers may not answer: the caller gets `unavailable`, or the bound that its question met, and
 * the log gets the reason behind `what`.
 */
export const orUnavailable =
  (what: string, unavailable: Problem | ((error: unknown) => Problem)) =>
  <R extends FastifyRequest, Answer>(handle: (request: R, reply: FastifyReply) => Promise<Answer>) =>
  async (request: R, reply: FastifyReply): Promise<Answer | FastifyReply> => {
    try {
      return await handle(request, reply)
    } catch (error) {
      request.log.error({ err: error }, what)
      const otherwise = typeof unavailable === 'function' ? unavailable(error) : unavailable
      return answerProblem(reply, questionFailure(error, { msMax: pageMsMax, unavailable: otherwise }))
    }
  }
