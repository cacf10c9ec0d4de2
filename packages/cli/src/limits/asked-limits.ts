import { WeirError } from '@weir/core/errors.ts'
import { type AskedLimits, findAskedLimits, type LimitQuestion } from '@weir/redis/asked-limits.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import type { CommandContext } from '../command-context.ts'
import { findPolicy } from './find-policy.ts'

/** What the commands about limits are asked, as typed. */
export interface LimitOptions extends LimitQuestion {
  /** Undefined when none was named: then it is the console's, else the file that is usual. */
  readonly policy?: string
  readonly data: string
  readonly json: boolean
}

/** Finds in the policy what was asked; a CONFIG_INVALID that says what is wrong otherwise. */
export async function askLimits(options: LimitOptions, context: CommandContext): Promise<AskedLimits> {
  const { policy, from } = await findPolicy(options, context)
  const found = findAskedLimits(policy, options, addressScope)
  if (found.kind === 'found') return found.asked
  const what = found.kind === 'unknown' ? `${found.message} (${from})` : `--${found.field} ${found.message}`
  throw new WeirError('CONFIG_INVALID', what)
}
