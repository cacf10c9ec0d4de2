import { WeirError } from '@weir/core/errors.ts'
import { type ChangedLimits, changeLimits, type LimitChange } from '@weir/redis/limit-admin.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, findConsole } from '../console/console-client.ts'
import { askLimits, type LimitOptions } from '../limits/find-policy.ts'
import { limitTable, reportLimits } from '../limits/limit-report.ts'
import { withLimitAdmin } from '../open-servers.ts'

/** How the limits of a subject stand. Changes nothing. */
export async function peekLimits(options: LimitOptions, context: CommandContext): Promise<void> {
  const asked = await askLimits(options, context)
  const limits = await withLimitAdmin(context, options.data, (admin) => reportLimits(admin, asked, 1))
  if (options.json) context.print(JSON.stringify({ subject: asked.subject.id, limits }))
  else context.print(limits.length === 0 ? 'No limit applies.' : limitTable(limits))
}

function printChanges({ subject, changed, left }: ChangedLimits, verb: string, context: CommandContext): void {
  for (const { name, keys } of changed)
    context.print(`${verb} ${name} of ${subject}: ${keys} ${keys === 1 ? 'key' : 'keys'} removed`)
  for (const { name, because } of left) context.print(`left ${name} as it is: it ${because}`)
}

/** Warns that an unblocked limit keeps its count, and that the next request may be blocked again. */
function sayUsedUp({ subject, changed }: ChangedLimits, options: LimitOptions, context: CommandContext): void {
  const { ip, keyId, route } = options
  const scope = Object.entries({ ip, 'key-id': keyId, route: route === undefined ? undefined : JSON.stringify(route) })
  const asked = scope.map(([flag, value]) => (value === undefined ? '' : ` --${flag} ${value}`)).join('')
  for (const { name, used_up } of changed) {
    if (!(used_up > 0)) continue
    const reset = `weir limits reset --subject ${subject} --limit ${name}${asked}`
    context.report(
      `${name} of ${subject} is used up: the next request is refused, and blocks again. "${reset}" forgets its count.`,
    )
  }
}

/** Changes counts by the console, whose audit records it; undefined without a console, or with a policy file. */
async function changeByConsole(
  options: LimitOptions,
  context: CommandContext,
  change: LimitChange,
): Promise<ChangedLimits | undefined> {
  const { subject, limit, ip, keyId, route, policy, data } = options
  const address = policy === undefined ? findConsole(context.environment, data) : undefined
  if (address === undefined) return undefined
  const path = `/v1/subjects/${encodeURIComponent(subject)}/limits/${change}`
  try {
    const body = { limit, ip, key_id: keyId, route }
    return (await askConsole<ChangedLimits>(address, { method: 'POST', path, body })).body
  } catch (error) {
    if (!(error instanceof WeirError) || error.code !== 'CONSOLE_UNAVAILABLE') throw error
    context.report(error.message)
    return undefined
  }
}

async function changeInRedis(
  options: LimitOptions,
  context: CommandContext,
  change: LimitChange,
): Promise<ChangedLimits> {
  const asked = await askLimits(options, context)
  const result = await withLimitAdmin(context, options.data, (admin) => changeLimits(admin, asked, options, change))
  context.report(
    'Done in Redis itself: no audit has it, and processes hold to refusals that they remember for two seconds.',
  )
  return result
}

async function run(options: LimitOptions, context: CommandContext, verb: string, change: LimitChange): Promise<void> {
  const result = (await changeByConsole(options, context, change)) ?? (await changeInRedis(options, context, change))
  if (options.json) context.print(JSON.stringify(result))
  else printChanges(result, verb, context)
  sayUsedUp(result, options, context)
}

/** Resets counts, and lifts blocks. */
export const resetLimits = (options: LimitOptions, context: CommandContext): Promise<void> =>
  run(options, context, 'reset', 'reset')

/** Lifts blocks; the counts stay. */
export const unblockLimits = (options: LimitOptions, context: CommandContext): Promise<void> =>
  run(options, context, 'unblocked', 'unblock')
