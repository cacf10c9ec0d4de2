import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '../policy.ts'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

/**
 * The policy of a text, or one POLICY_INVALID that lists every problem with file and line. `report` gets a line for
 * each key that no longer does anything.
 */
export function requirePolicy(text: string, file: string, report: (line: string) => void = () => undefined): Policy {
  const parsed = parsePolicy(text, file)
  if (parsed.kind === 'policy') {
    for (const remark of parsed.remarks) report(formatProblem(remark))
    return parsed.policy
  }
  const lines = parsed.problems.map(formatProblem)
  throw new WeirError('POLICY_INVALID', `The policy is invalid.\n  ${lines.join('\n  ')}`)
}
