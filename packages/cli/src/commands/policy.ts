import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, requireConsole } from '../console/console-client.ts'
import { type AppliedFile, changeLines, countsText } from '../console/file-changes.ts'
import { readPolicyFile } from '../read-policy-file.ts'
import { effectivePolicyOf } from '../up/effective-policy.ts'

interface PolicyOptions {
  readonly policy: string
  readonly data: string
  readonly json: boolean
}

/**
 * What the file says to the console. That of a `weir up` gets the demo's keys and addresses as at its start: they stand in
 * no file, and would be taken away.
 */
async function send(options: PolicyOptions, context: CommandContext, query: string): Promise<AppliedFile> {
  const text = readPolicyFile(options.policy)
  requirePolicy(text, options.policy)
  const address = requireConsole(context.environment, options.data)
  const own = context.environment.WEIR_CONSOLE_URL ? undefined : effectivePolicyOf(options.data, text)
  const path = `/v1/policy?${query}${own === undefined ? '' : `&revision=${own.revision}`}`
  const { body } = await askConsole<AppliedFile>(address, { method: 'PUT', path, body: own?.text ?? text })
  return body
}

/** Puts a policy file in force: what it no longer has goes, what the admin API has made stays. */
export async function applyPolicy(
  options: PolicyOptions & { readonly dryRun: boolean; readonly ifChanged: boolean },
  context: CommandContext,
): Promise<void> {
  const result = await send(options, context, `dry_run=${options.dryRun}&if_changed=${options.ifChanged}`)
  if (options.json) {
    context.print(JSON.stringify(result))
    return
  }
  for (const line of changeLines(result)) context.print(line)
  const verb = options.dryRun ? 'would be in force' : 'is in force'
  context.report(
    `${options.policy} ${result.changed ? `${verb}: ${countsText(result)}` : 'is in force already; nothing changes'}`,
  )
}

/** What `applyPolicy` would change; whether that is anything. */
export async function diffPolicy(
  options: PolicyOptions,
  context: CommandContext,
): Promise<{ readonly differs: boolean }> {
  const result = await send(options, context, 'dry_run=true')
  if (options.json) context.print(JSON.stringify(result))
  else for (const line of changeLines(result)) context.print(line)
  if (!result.changed) context.report(`${options.policy} is in force; applying it would change nothing`)
  return { differs: result.changed }
}

/** The policy in force, as a file that says the same. */
export async function exportPolicy(options: Omit<PolicyOptions, 'policy'>, context: CommandContext): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const accept = options.json ? 'application/json' : 'application/yaml'
  const { text } = await askConsole(address, { path: '/v1/policy', accept })
  context.print(text.trimEnd())
}
