import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { type AskedLimits, findAskedLimits, type LimitQuery } from '@weir/redis/asked-limits.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, findConsole } from '../console/console-client.ts'
import { inProject } from '../project.ts'
import { readPolicyFile } from '../read-input-file.ts'

/** Which policy a command reads. */
export interface PolicyOptions extends CommonOptions {
  /** The file that was named; undefined for the policy of the console, else the usual file. */
  readonly policy?: string
}

/** The options of a command about limits, as typed. */
export type LimitOptions = PolicyOptions & LimitQuery

/** A policy, and where it is from, for people. */
interface FoundPolicy {
  readonly policy: Policy
  readonly from: string
}

interface WrittenPolicy {
  readonly tokens?: unknown
  readonly subjects?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const readFile = (file: string): FoundPolicy => ({
  policy: requirePolicy(readPolicyFile(file), file),
  from: `the policy ${file}`,
})

const usualFile = ({ environment }: CommandContext) => environment.WEIR_POLICY_FILE || inProject('weir.yaml')

/**
 * Reads the policy in force, of all subjects only the one named and those above it: there may be a million, more than a
 * file may hold. Tokens and keys are dropped: the console shows their hashes only to callers with the scope for
 * them, and no limit depends on them.
 *
 * @returns undefined where no console is known.
 */
async function readFromConsole(
  { data }: PolicyOptions,
  { environment }: CommandContext,
  subject?: string,
  isWanted = subject !== undefined,
) {
  const address = findConsole(environment, data)
  if (address === undefined) return undefined
  const { body } = await askConsole<WrittenPolicy>(address, { path: '/v1/policy', query: { subject } })
  const { tokens: _, subjects = {}, ...definitions } = body
  const known = isWanted ? Object.entries(subjects) : []
  const bare = known.map(([id, { keys: __, ...rest }]) => [id, rest])
  const policy = requirePolicy(JSON.stringify({ ...definitions, subjects: Object.fromEntries(bare) }), address.url)
  return { policy, from: `the console at ${address.url}` }
}

/** Finds the policy that `findPolicy` would find, with all of its subjects, of which there may be a million. */
export async function findWholePolicy(options: PolicyOptions, context: CommandContext): Promise<FoundPolicy> {
  if (options.policy !== undefined) return readFile(options.policy)
  return (await readFromConsole(options, context, undefined, true)) ?? readFile(usualFile(context))
}

/** Finds the plans, limits and routes of the policy that `findPolicy` would find, without any subject. */
export async function findDefinitions(options: PolicyOptions, context: CommandContext): Promise<FoundPolicy> {
  if (options.policy !== undefined) return readFile(options.policy)
  return (await readFromConsole(options, context)) ?? readFile(usualFile(context))
}

/**
 * Finds the policy that the question is about: the file that was named; else the one in force, from the console; else,
 * where no console can be reached, the usual file.
 */
export async function findPolicy(options: LimitOptions, context: CommandContext): Promise<FoundPolicy> {
  if (options.policy !== undefined) return readFile(options.policy)
  const usual = usualFile(context)
  try {
    const found = await readFromConsole(options, context, options.subject)
    if (found === undefined) return readFile(usual)
    context.report(`policy: ${found.from}`)
    return found
  } catch (error) {
    if (!(error instanceof WeirError) || error.code !== 'CONSOLE_UNAVAILABLE') throw error
    context.report(`policy: ${usual}. ${error.message}`)
    return readFile(usual)
  }
}

/** Finds the limits that were asked about. Throws COMMAND_INVALID with what is wrong with the question. */
export async function askLimits(options: LimitOptions, context: CommandContext): Promise<AskedLimits> {
  const { policy, from } = await findPolicy(options, context)
  const found = findAskedLimits(policy, options)
  if (found.kind === 'found') return found.asked
  const what = found.kind === 'unknown' ? `${found.message} (by ${from})` : `--${found.field} ${found.message}`
  throw new WeirError('COMMAND_INVALID', what)
}
