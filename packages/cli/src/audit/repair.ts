import { askQuotaUses } from '@weir/clickhouse/audit/quota-uses.ts'
import { rebuildRollup } from '@weir/clickhouse/audit/rollups.ts'
import type { Span } from '@weir/clickhouse/audit/span.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import { createQuotaCounts } from '@weir/redis/quota-counts.ts'
import { quotaFloors } from '@weir/redis/quota-floors.ts'
import type { AuditPorts, AuditResult } from './audit-all.ts'
import { auditRollups, hourSpan } from './audit-rollups.ts'
import { insertMissing } from './repair-rows.ts'

/** Rows that arrive while a rollup is made anew may spoil it: then once more. */
const rebuildsMax = 3

/**
 * Mends what an audit has found, raw rows first, then what is made of them; says line by line what it did. May be repeated, also
 * after a crash at any point: each step looks at what is there.
 */
export async function repair(
  ports: AuditPorts,
  found: AuditResult,
  span: Span,
  report: (line: string) => void,
): Promise<void> {
  const { clickhouse, servers, policy, nowMs, pause } = ports
  // 1. Raw rows from Kafka. A crash after it leaves rollups that have them twice, or as they should be: step 2 looks.
  for (const missing of found.missing) {
    const { inserted, refused, why } = await insertMissing(clickhouse, missing)
    const where = `${missing.metered.topic}, partition ${missing.partition}`
    if (inserted > 0) report(`inserted ${inserted} rows again from ${where}`)
    if (refused > 0) report(`${where}: ClickHouse refuses ${refused} records (${why})`)
  }
  // 2. Rollups, from the raw rows as they are now. A crash in it leaves hours that lack rows: the next audit finds them.
  for (let times = 1; times <= rebuildsMax; times += 1) {
    const { differences } = await auditRollups(clickhouse, span, nowMs(), pause)
    for (const { rollup, difference } of differences) {
      await rebuildRollup(clickhouse, rollup, hourSpan(difference))
      report(`made ${rollup.table} anew for the hour from ${new Date(difference.hourMs).toISOString()}`)
    }
    if (differences.length === 0) break
  }
  // 3. Redis, to the sums of the rows that are there by now. A crash in it leaves counts that the next run raises.
  const { summable } = quotasOf(policy)
  const floors = quotaFloors(await askQuotaUses(clickhouse, summable, nowMs()), summable)
  const raised = (await createQuotaCounts(servers).raise(floors)).filter(({ outcome }) => outcome === 'raised')
  if (raised.length > 0)
    report(`raised in Redis: ${raised.length} ${raised.length === 1 ? 'count' : 'counts'} of quotas`)
}
