import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import type { CommandContext } from '../command-context.ts'
import { askLimits, type LimitOptions } from '../limits/find-policy.ts'
import { durationText, type LimitReport, limitTable, reportLimits } from '../limits/limit-report.ts'
import { withLimitAdmin } from '../open-servers.ts'

/** What a request would get now: null where that takes to know more of it than was named. */
interface Outlook {
  readonly allowed: boolean | null
  readonly denied_by: string
  /** -1 where no waiting helps. */
  readonly retry_after_ms: number
}

/** The first limit that refuses names the denial, and the longest wait counts; a limit in shadow refuses nothing. */
function outlookOf(limits: readonly LimitReport[]): Outlook {
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const refusing = enforced.filter(({ exact, counts }) => exact && counts?.[0]?.admits === false)
  const [first] = refusing
  if (first === undefined) {
    return { allowed: enforced.every(({ exact }) => exact) ? true : null, denied_by: '', retry_after_ms: 0 }
  }
  const waits = refusing.map(({ counts }) => counts?.[0]?.retry_after_ms ?? 0)
  return { allowed: false, denied_by: first.name, retry_after_ms: waits.includes(-1) ? -1 : Math.max(...waits) }
}

function outlookText({ allowed, denied_by, retry_after_ms }: Outlook): string {
  if (allowed === null) return 'Now: depends on what was not named; see the limits counted by more than that.'
  if (allowed) return 'Now: would be admitted.'
  const wait = retry_after_ms === -1 ? 'waiting does not help' : `again in ${durationText(retry_after_ms)}`
  return `Now: would be refused by ${denied_by}; ${wait}.`
}

function headline({ subject, route }: AskedLimits, cost: number): string {
  const { id, plan, timeZone, anchor } = subject
  const months = anchor === 1 ? '' : `, months from day ${anchor}`
  return `${id}: plan ${plan.name}, ${timeZone}${months}. Route ${route?.template ?? '*'}, cost ${cost}.`
}

/** Which limits a request meets, why, and how they stand. Changes nothing. */
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
