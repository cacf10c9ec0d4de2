import type { Applied, Impact } from '@weir/api/policy.ts'
import { WeirError } from '@weir/core/errors.ts'
import { counted } from '@weir/core/format.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, consoleAnswer, requireConsole } from '../console/console-client.ts'
import { changeLines, countsText } from '../console/file-changes.ts'
import { impactNotes, impactTable } from '../console/impact-table.ts'
import { undelivered } from '../console/undelivered.ts'
import { readPolicyFile } from '../read-input-file.ts'
import { readVariables } from '../read-state-file.ts'
import { confirm } from '../terminal/confirm.ts'
import { effectivePolicyOf } from '../up/effective-policy.ts'

interface PolicyOptions extends CommonOptions {
  readonly policy: string
}

/**
 * Returns the file as it is sent to the console. That of a `weir up` gets the demo's keys and addresses as at its
 * start: no file holds them, and applying one without them would delete them.
 */
function fileToSend(options: PolicyOptions, context: CommandContext) {
  const text = readPolicyFile(options.policy)
  const parsed = requirePolicy(text, options.policy, context.report)
  const isLocal = !context.environment.WEIR_CONSOLE_URL
  const known = isLocal ? readVariables(options.data) : undefined
  for (const one of undelivered(parsed, known && ((name) => known.includes(name)))) context.report(one)
  const own = isLocal ? effectivePolicyOf(options.data, text) : undefined
  return { body: own?.text ?? text, revision: own?.revision }
}

async function send(
  options: PolicyOptions,
  context: CommandContext,
  how: { readonly dry_run: boolean; readonly if_changed?: boolean },
  { body, revision } = fileToSend(options, context),
): Promise<Applied> {
  return consoleAnswer(context, options, { method: 'PUT', path: '/v1/policy', query: { ...how, revision }, body })
}

/** Asks what the file would have refused of the requests of the last days. */
const askImpact = (options: DiffOptions, context: CommandContext): Promise<Impact> =>
  consoleAnswer(context, options, {
    method: 'POST',
    path: '/v1/policy/impact',
    query: { subject: options.subject, top: options.top, from: options.from },
    body: fileToSend(options, context).body,
  })

/** Prints what a file would change, and how much. */
function showPlan(plan: Applied, { print, report }: CommandContext): void {
  for (const line of changeLines(plan)) print(line)
  report(`Plan: ${countsText(plan, 'plan')}.`)
}

interface ApplyOptions extends PolicyOptions {
  readonly dryRun: boolean
  readonly ifChanged: boolean
  readonly yes: boolean
}

/**
 * Puts a policy file in force: what it no longer has goes, what the admin API has made stays. A person confirms before
 * anything is deleted.
 */
export async function applyPolicy(options: ApplyOptions, context: CommandContext): Promise<void> {
  const { dryRun, json, policy, yes } = options
  const how = { dry_run: dryRun, if_changed: options.ifChanged }
  const file = fileToSend(options, context)
  const planned = () => send(options, context, { ...how, dry_run: true }, file)
  const plan = dryRun || yes ? undefined : await planned()
  if (plan !== undefined && plan.deleted > 0) {
    if (!json) showPlan(plan, context)
    await confirm(`${policy} destroys ${counted(plan.deleted, 'part')} of the policy.`, context)
    // A person has read this plan and no other.
    if (JSON.stringify((await planned()).changes) !== JSON.stringify(plan.changes))
      throw new WeirError('CONSOLE_REFUSED', 'The policy was changed meanwhile, and so the plan. Run it again.')
  }
  const result = await send(options, context, how, file)
  if (json) return context.print(JSON.stringify(result))
  if (!result.changed) return context.report(`${policy} is already in force`)
  if (dryRun) return showPlan(result, context)
  if (plan === undefined || plan.deleted === 0) for (const line of changeLines(result)) context.print(line)
  context.report(`${policy} is now in force: ${countsText(result)}`)
}

interface DiffOptions extends PolicyOptions {
  readonly impact: boolean
  readonly subject?: string
  readonly top?: string
  readonly from?: string
}

/**
 * Prints what `applyPolicy` would change, and with `impact` what it would have refused. Resolves to whether it changes
 * anything.
 */
export async function diffPolicy(
  options: DiffOptions,
  context: CommandContext,
): Promise<{ readonly differs: boolean }> {
  const { impact: isWanted, json, policy } = options
  if (!isWanted && (options.subject ?? options.top ?? options.from) !== undefined) {
    throw new WeirError('COMMAND_INVALID', '--subject, --top and --from need --impact')
  }
  const result = await send(options, context, { dry_run: true })
  const impact = isWanted && result.changed ? await askImpact(options, context) : undefined
  if (json) context.print(JSON.stringify(impact === undefined ? result : { ...result, impact }))
  else if (result.changed) showPlan(result, context)
  if (!result.changed) context.report(`${policy} is already in force`)
  if (impact === undefined || json) return { differs: result.changed }
  context.print('')
  context.print(impactTable(impact))
  for (const note of impactNotes(impact)) context.report(note)
  return { differs: result.changed }
}

/** Prints the policy in force as a policy file. */
export async function exportPolicy(options: CommonOptions, context: CommandContext): Promise<void> {
  const address = requireConsole(context.environment, options.data)
  const accept = options.json ? 'application/json' : 'application/yaml'
  const { text } = await askConsole(address, { path: '/v1/policy', accept })
  context.print(text.trimEnd(), 'exactly')
}
