import { QuestionBoundMet } from '@weir/clickhouse/question-bounds.ts'
import { streamRowsMax } from '@weir/clickhouse/usage-stream.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'

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
