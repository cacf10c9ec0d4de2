import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

interface Remedy {
  readonly how: string
  readonly ms?: number
  readonly at_most?: number
  readonly at_least?: number
  readonly limit?: string
  readonly plan?: string
}

interface Explanation {
  readonly ts: string
  readonly subject: string
  readonly method: string
  readonly route: string
  readonly cost: number
  readonly outcome: string
  readonly summary: string
  readonly limits: readonly {
    readonly name: string
    readonly used: number | null
    readonly size: number
    readonly needed: number
    readonly remaining: number | null
    readonly reset_at: string
    readonly because: readonly string[]
    readonly refused: boolean
  }[]
  readonly would_have_allowed: readonly Remedy[]
  readonly policy: {
    readonly change?: string
    readonly exact: boolean
    readonly since_changed: readonly { readonly kind: string; readonly name: string }[]
  } | null
}

/** Says in few words what would have been enough. */
function remedyText({ how, ms = 0, at_most: most, at_least: least, limit, plan }: Remedy): string {
  if (how === 'wait') return `wait ${ms} ms`
  if (how === 'cost') return `cost ≤ ${most}`
  if (how === 'plan') return `plan ${plan}`
  return `${how} of ${limit} ≥ ${least}`
}

const count = (value: number | null) => (value === null ? '-' : value.toLocaleString('en'))

/** Explains one decision: why it came out as it did, and what would have admitted it. */
export async function explainDecision(id: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const found = await consoleAnswer<Explanation>(context, options, { path: `/v1/decisions/${encodeURIComponent(id)}` })
  if (options.json) return context.print(JSON.stringify(found))
  const { ts, subject, method, route, cost, outcome, summary, limits, would_have_allowed: remedies, policy } = found
  context.print(`${outcome === 'deny' ? 'REFUSED' : 'ALLOWED'}  ${subject}  ${method} ${route}  cost ${cost}  ${ts}`)
  context.print(summary)
  const rows = limits.map(({ name, used, size, needed, remaining, reset_at: reset, because, refused }) => [
    ...[name, count(used), count(size), count(needed), count(remaining), reset, because.join(', ')],
    refused ? 'refused' : '',
  ])
  const head = ['LIMIT', 'USED', 'SIZE', 'NEEDED', 'LEFT', 'FREE AGAIN', 'BECAUSE OF', '']
  if (rows.length > 0) context.print(textTable([head, ...rows]))
  if (remedies.length > 0) context.print(`would have helped: ${remedies.map(remedyText).join(' · ')}`)
  if (policy === null) return
  const since = policy.since_changed.map(({ kind, name }) => `${kind} ${name}`).join(', ')
  const then =
    policy.change === undefined ? 'not known' : `change ${policy.change}${policy.exact ? '' : ' (by its time)'}`
  context.print(`policy then: ${then}${since === '' ? '' : `; since then changed: ${since}`}`)
}
