import { askKnownUnits } from '@weir/clickhouse/audit/quota-uses.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import { createQuotaCounts, quotaFloors } from '@weir/redis/quota-counts.ts'
import type { CommandContext } from '../command-context.ts'
import { findDefinitions, type PolicyOptions } from '../limits/find-policy.ts'
import { withClickhouse, withQuotaServers } from '../open-servers.ts'
import { textTable } from '../text-table.ts'

/** Counts that a person reads; the rest is only counted. */
const shownMax = 50

/**
 * Raises every calendar quota to what ClickHouse shows as used in the running period, for every subject that was active
 * in it. Lowers none, and may be repeated.
 */
export async function restoreQuotas(options: PolicyOptions, context: CommandContext): Promise<void> {
  const { policy, from } = await findDefinitions(options, context)
  const { summable, unsummable } = quotasOf(policy)
  context.report(`quotas from ${from}`)
  context.progress.tell('summing what was used')
  const restored = await withClickhouse(context, options.data, async (clickhouse) => {
    const floors = quotaFloors(await askKnownUnits(clickhouse, summable, Date.now()), summable, rootsOf(policy))
    return withQuotaServers(context, options.data, async (servers) => {
      context.progress.tell(`raising ${floors.length} counts`)
      const counts = await createQuotaCounts(servers).raise(floors)
      return floors.flatMap((floor, at) => {
        const count = counts[at]
        return count === undefined ? [] : [{ ...floor, ...count }]
      })
    })
  })
  const raised = restored.filter(({ outcome }) => outcome === 'raised')
  const other = restored.filter(({ outcome }) => outcome === 'other')
  for (const { name, because } of unsummable) context.report(`${name} unchanged: it ${because}`)
  for (const { key } of other) context.report(`${key} unchanged: its count in Redis is for a different period`)
  if (options.json) {
    const shown = raised.map(({ key, before, now }) => ({ key, before, now }))
    return context.print(JSON.stringify({ counts: restored.length, raised: shown, left: unsummable }))
  }
  context.report(`${restored.length} counts checked, ${raised.length} raised`)
  if (raised.length === 0) return
  const rows = raised.slice(0, shownMax).map(({ key, before, now }) => [key, String(before), String(now)])
  const more = raised.length > shownMax ? [[`… and ${raised.length - shownMax} more`, '', '']] : []
  context.print(textTable([['KEY', 'WAS', 'IS'], ...rows, ...more]))
}
