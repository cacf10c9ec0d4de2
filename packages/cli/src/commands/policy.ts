import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { askConsole, requireConsole } from '../console/console-client.ts'
import { type AppliedFile, changeLines, countsText } from '../console/file-changes.ts'
import type { Surroundings } from '../project.ts'
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
async function send(options: PolicyOptions, around: Surroundings, query: string): Promise<AppliedFile> {
  const text = readPolicyFile(options.policy)
  requirePolicy(text, options.policy)
  const address = requireConsole(around.environment, options.data)
  const own = around.environment.WEIR_CONSOLE_URL ? undefined : effectivePolicyOf(options.data, text)
  const path = `/v1/policy?${query}${own === undefined ? '' : `&revision=${own.revision}`}`
  const { body } = await askConsole<AppliedFile>(address, { method: 'PUT', path, body: own?.text ?? text })
  return body
}

/** Puts a policy file in force: what it no longer has goes, what the admin API has made stays. */
export async function applyPolicy(
  options: PolicyOptions & { readonly dryRun: boolean; readonly ifChanged: boolean },
  around: Surroundings,
): Promise<void> {
  const result = await send(options, around, `dry_run=${options.dryRun}&if_changed=${options.ifChanged}`)
  if (options.json) {
    around.print(JSON.stringify(result))
    return
  }
  for (const line of changeLines(result)) around.print(line)
  const verb = options.dryRun ? 'would be in force' : 'is in force'
  around.say(
    `${options.policy} ${result.changed ? `${verb}: ${countsText(result)}` : 'is in force already; nothing changes'}`,
  )
}

/** What `applyPolicy` would change; whether that is anything. */
export async function diffPolicy(options: PolicyOptions, around: Surroundings): Promise<{ readonly differs: boolean }> {
  const result = await send(options, around, 'dry_run=true')
  if (options.json) around.print(JSON.stringify(result))
  else for (const line of changeLines(result)) around.print(line)
  if (!result.changed) around.say(`${options.policy} is in force; applying it would change nothing`)
  return { differs: result.changed }
}

/** The policy in force, as a file that says the same. */
export async function exportPolicy(options: Omit<PolicyOptions, 'policy'>, around: Surroundings): Promise<void> {
  const address = requireConsole(around.environment, options.data)
  const accept = options.json ? 'application/json' : 'application/yaml'
  const { text } = await askConsole(address, { path: '/v1/policy', accept })
  around.print(text.trimEnd())
}
