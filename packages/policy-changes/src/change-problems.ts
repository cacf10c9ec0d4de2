import type { PolicyFault } from '@weir/policy/entities.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'

const problem =
  (type: string, title: string, status: number) =>
  (detail: string): Problem => ({ type, title, status, detail })

/** The change collides with what the policy has. */
export const conflict = problem(problemType('conflict'), 'Conflict', 409)
/** Kafka is down, or the console cannot accept the change now. */
export const policyUnavailable = problem(problemType('policy-unavailable'), 'Unavailable', 503)
const refused = problem(problemType('policy-refused'), 'The policy would not be right', 422)

/** One thing that is wrong with a change, with its position in the file where one was sent. */
interface ChangeFault extends PolicyFault {
  readonly line?: number
  readonly column?: number
}

/** Lists everything that keeps a change from being made. */
export function changeRejected(problems: readonly ChangeFault[]): Problem {
  const faults = problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  const detail = `Nothing was changed. ${faults.join('; ')}`
  return { ...refused(detail), problems }
}
