import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, consoleAnswer, requireConsole } from '../console/console-client.ts'
import { type AppliedFile, changeLines, countsText } from '../console/file-changes.ts'
import { readPolicyFile } from '../read-input-file.ts'
import { effectivePolicyOf } from '../up/effective-policy.ts'

interface PolicyOptions extends CommonOptions {
  readonly policy: string
}

interface HowApplied {
  readonly dry_run: boolean
  readonly if_changed?: boolean
}

/**
 * Sends the file to the console. The file of a `weir up` gets the demo's keys and addresses as at its start: no file
 * holds them, and applying one without them would delete them.
 */
async function send(options: PolicyOptions, context: CommandContext, how: HowApplied): Promise<AppliedFile> {
  const text = readPolicyFile(options.policy)
  requirePolicy(text, options.policy)
  const own = context.environment.WEIR_CONSOLE_URL ? undefined : effectivePolicyOf(options.data, text)
  const query = { ...how, revision: own?.revision }
  return consoleAnswer(context, options, { method: 'PUT', path: '/v1/policy', query, body: own?.text ?? text })
}

/** Puts a policy file in force: what it no longer has goes, what the admin API has made stays. */
export async function applyPolicy(
  options: PolicyOptions & { readonly dryRun: boolean; readonly ifChanged: boolean },
  context: CommandContext,
): Promise<void> {
  const result = await send(options, context, { dry_run: options.dryRun, if_changed: options.ifChanged })
  if (options.json) return context.print(JSON.stringify(result))
  for (const line of changeLines(result)) context.print(line)
  const verb = options.dryRun ? 'would be in force' : 'is in force'
  context.report(
    `${options.policy} ${result.changed ? `${verb}: ${countsText(result)}` : 'is in force already; nothing changes'}`,
  )
}

/** Prints what `applyPolicy` would change. Resolves to whether that is anything. */
export async function diffPolicy(
  options: PolicyOptions,
  context: CommandContext,
): Promise<{ readonly differs: boolean }> {
  const result = await send(options, context, { dry_run: true })
  if (options.json) context.print(JSON.stringify(result))
  else for (const line of changeLines(result)) context.print(line)
  if (!result.changed) context.report(`${options.policy} is in force; applying it would change nothing`)
  return { differs: result.changed }
}

/** Prints the policy in force as a policy file. */
export async function exportPolicy(options: CommonOptions, context: CommandContext): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const accept = options.json ? 'application/json' : 'application/yaml'
  const { text } = await askConsole(address, { path: '/v1/policy', accept })
  context.print(text.trimEnd(), 'exactly')
}
