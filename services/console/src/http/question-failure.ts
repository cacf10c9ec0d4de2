import type { Operation } from '@weir/api/operation.ts'
import { pageMsMax, QuestionBoundMet, streamRowsMax } from '@weir/clickhouse/question-bounds.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, RouteShorthandOptions } from 'fastify'
import { answerProblem } from './problems.ts'
import { type Handler, serve } from './serve.ts'

const questionTooLarge = problem(
  'question-too-large',
  'Query too large',
  422,
  `The answer has more than ${streamRowsMax} rows, or reads too much. Ask for a shorter span, a longer step or fewer columns in \`by\`.`,
)
const questionTimedOut = (msMax: number) =>
  problem(
    'question-timed-out',
    'Query timed out',
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

/** What most callers get where ClickHouse does not answer. */
export const askAgain = 'ClickHouse did not respond. Try again; repeating the request is safe.'

/** What is said of a question that servers do not answer. */
export interface Unanswered {
  /** To the log, with the reason behind it. */
  readonly what: string
  /** To the caller, unless its question met a bound. */
  readonly problem: Problem | ((error: unknown) => Problem)
  readonly msMax?: number
}

/** Serves an operation whose servers may not answer. */
export function serveQuestion<O extends Operation>(
  app: FastifyInstance,
  operation: O,
  { what, problem, msMax = pageMsMax }: Unanswered,
  handle: Handler<O>,
  options?: RouteShorthandOptions,
): void {
  const handler: Handler<O> = async (request, reply) => {
    try {
      return await handle(request, reply)
    } catch (error) {
      request.log.error({ err: error }, what)
      const unavailable = typeof problem === 'function' ? problem(error) : problem
      return answerProblem(reply, questionFailure(error, { msMax, unavailable }))
    }
  }
  serve(app, operation, handler, options)
}
