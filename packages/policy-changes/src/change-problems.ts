import type { PolicyFault } from '@weir/policy/entities.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'

/** The change collides with what the policy has. */
export const conflict = (detail: string): Problem => problem('conflict', 'Conflict', 409, detail)
/** Kafka is down, or the console cannot accept the change now. */
export const policyUnavailable = (detail: string): Problem => problem('policy-unavailable', 'Unavailable', 503, detail)
/** One thing that is wrong with a change, with its position in the file where one was sent. */
interface ChangeFault extends PolicyFault {
  readonly line?: number
  readonly column?: number
}

/** Lists everything that keeps a change from being made. */
export function changeRejected(problems: readonly ChangeFault[]): Problem {
  const faults = problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  const detail = `Nothing was changed. ${faults.join('; ')}`
  return { ...problem('policy-refused', 'Invalid policy', 422, detail), problems }
}
