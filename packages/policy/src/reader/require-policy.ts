import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '../policy.ts'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

/** The policy of a text, or one POLICY_INVALID that lists every problem with file and line. */
export function requirePolicy(text: string, file: string): Policy {
  const parsed = parsePolicy(text, file)
  if (parsed.kind === 'policy') return parsed.policy
  const lines = parsed.problems.map(formatProblem)
  throw new WeirError('POLICY_INVALID', `The policy is not right.\n  ${lines.join('\n  ')}`)
}
