import { WeirError } from '@weir/core/errors.ts'
import { wait } from '@weir/core/format.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import { type ChangedLimits, changeLimits, type LimitChange } from '@weir/redis/limit-admin.ts'
import type { CommandContext } from '../command-context.ts'
import { askConsole, findConsole } from '../console/console-client.ts'
import { askLimits, type LimitOptions } from '../limits/find-policy.ts'
import { type LimitReport, limitTable, reportLimits } from '../limits/limit-report.ts'
import { withLimitAdmin } from '../open-servers.ts'

/**
 * The decision that a request would get now; `allowed` is null if it depends on facts that were not named. The first
 * limit that refuses names the denial, and the longest wait counts: -1 where no waiting helps. A limit in shadow
 * refuses nothing.
 */
function outlookOf(limits: readonly LimitReport[]) {
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const refusing = enforced.filter(({ exact, counts }) => exact && counts?.[0]?.admits === false)
  const [first] = refusing
  if (first === undefined) {
    return { allowed: enforced.every(({ exact }) => exact) ? true : null, denied_by: '', retry_after_ms: 0 }
  }
  const waits = refusing.map(({ counts }) => counts?.[0]?.retry_after_ms ?? 0)
  return { allowed: false, denied_by: first.name, retry_after_ms: waits.includes(-1) ? -1 : Math.max(...waits) }
}

function outlookText({ allowed, denied_by, retry_after_ms }: ReturnType<typeof outlookOf>): string {
  if (allowed === null) return 'Now: depends on what was not named; see the limits counted by more than that.'
  if (allowed) return 'Now: would be admitted.'
  const again = retry_after_ms === -1 ? 'waiting does not help' : `again in ${wait(retry_after_ms)}`
  return `Now: would be refused by ${denied_by}; ${again}.`
}

function headline({ subject, route }: AskedLimits, cost: number): string {
  const { id, plan, timeZone, anchor } = subject
  const months = anchor === 1 ? '' : `, months from day ${anchor}`
  return `${id}: plan ${plan.name}, ${timeZone}${months}. Route ${route?.template ?? '*'}, cost ${cost}.`
}

/** Explains which limits apply to a request, why, and what they have counted. Changes nothing. */
export async function explain(options: LimitOptions, context: CommandContext): Promise<void> {
  const asked = await askLimits(options, context)
  const cost = asked.route?.cost ?? 1
  const limits = await withLimitAdmin(context, options.data, (admin) => reportLimits(admin, asked, cost))
  const outlook = outlookOf(limits)
  if (options.json) {
    const { id, plan, timeZone, anchor } = asked.subject
    const route = asked.route?.template ?? '*'
    const head = { subject: id, plan: plan.name, time_zone: timeZone, anchor, route, cost }
    return context.print(JSON.stringify({ ...head, ...outlook, limits }))
  }
  const table = limits.length === 0 ? 'No limit applies.' : limitTable(limits)
  context.print([headline(asked, cost), '', table, '', outlookText(outlook)].join('\n'))
}

/** Shows what the limits of a subject have counted. Changes nothing. */
export async function peekLimits(options: LimitOptions, context: CommandContext): Promise<void> {
  const asked = await askLimits(options, context)
  const limits = await withLimitAdmin(context, options.data, (admin) => reportLimits(admin, asked, 1))
  if (options.json) context.print(JSON.stringify({ subject: asked.subject.id, limits }))
  else context.print(limits.length === 0 ? 'No limit applies.' : limitTable(limits))
}

function printChanges({ subject, changed, left }: ChangedLimits, verb: string, context: CommandContext): void {
  for (const { name, keys } of changed)
    context.print(`${verb} ${name} of ${subject}: ${keys} ${keys === 1 ? 'key' : 'keys'} removed`)
  for (const { name, because } of left) context.print(`${name} unchanged: it ${because}`)
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
    'Done in Redis itself: no audit has it, a loss of Redis brings the units back, and processes hold to refusals that they remember for two seconds.',
  )
  return result
}

/** Resets counts and lifts blocks, or only lifts blocks while the counts stay. */
export async function changeCounts(change: LimitChange, options: LimitOptions, context: CommandContext): Promise<void> {
  const result = (await changeByConsole(options, context, change)) ?? (await changeInRedis(options, context, change))
  if (options.json) context.print(JSON.stringify(result))
  else printChanges(result, change === 'reset' ? 'reset' : 'unblocked', context)
  sayUsedUp(result, options, context)
}
