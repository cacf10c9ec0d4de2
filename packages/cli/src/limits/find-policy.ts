import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, findConsole } from '../console/console-client.ts'
import { inProject } from '../project.ts'
import { readPolicyFile } from '../read-policy-file.ts'
import type { LimitOptions } from './asked-limits.ts'

/** A policy, and where it is from, for people. */
interface FoundPolicy {
  readonly policy: Policy
  readonly from: string
}

const ofFile = (file: string): FoundPolicy => ({
  policy: requirePolicy(readPolicyFile(file), file),
  from: `by the policy ${file}`,
})

/** As `findPolicy`, without any subject: what plans, limits and routes there are. */
export async function findDefinitions(
  { policy: file, data }: Pick<LimitOptions, 'policy' | 'data'>,
  context: CommandContext,
): Promise<FoundPolicy> {
  if (file !== undefined) return ofFile(file)
  const usual = context.environment.WEIR_POLICY_FILE || inProject('weir.yaml')
  const address = findConsole(context.environment, data)
  if (address === undefined) return ofFile(usual)
  const { body } = await askConsole<WrittenPolicy>(address, { path: '/v1/policy' })
  // Subjects may be a million, and more than a file may hold.
  const { subjects: _, ...definitions } = body
  return { policy: readAnswer(definitions, address.url), from: `by the console at ${address.url}` }
}

interface WrittenPolicy {
  readonly tokens?: unknown
  readonly subjects?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Tokens and keys are left out: the console says their hashes only to who may see them, and no limit is about them. */
function readAnswer({ tokens: _, subjects = {}, ...rest }: WrittenPolicy, url: string): Policy {
  const bare = Object.entries(subjects).map(([id, { keys: __, ...subject }]) => [id, subject])
  return requirePolicy(JSON.stringify({ ...rest, subjects: Object.fromEntries(bare) }), url)
}

/**
 * The policy that the question is about: the file that was named; else the one in force, as the console has it (of all
 * subjects only the one asked about); else, where no console can be reached, the usual file.
 */
export async function findPolicy(
  { policy: file, data, subject }: LimitOptions,
  context: CommandContext,
): Promise<FoundPolicy> {
  if (file !== undefined) return ofFile(file)
  const usual = context.environment.WEIR_POLICY_FILE || inProject('weir.yaml')
  const address = findConsole(context.environment, data)
  if (address === undefined) return ofFile(usual)
  try {
    const path = `/v1/policy?subject=${encodeURIComponent(subject)}`
    const { body } = await askConsole<WrittenPolicy>(address, { path })
    context.report(`by the policy in force, from the console at ${address.url}`)
    return { policy: readAnswer(body, address.url), from: `by the console at ${address.url}` }
  } catch (error) {
    if (!(error instanceof WeirError) || error.code !== 'CONSOLE_UNAVAILABLE') throw error
    context.report(`by the policy ${usual}; ${error.message}`)
    return ofFile(usual)
  }
}
