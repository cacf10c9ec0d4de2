import { randomUUID } from 'node:crypto'
import { askKnownUnits } from '@weir/clickhouse/audit/quota-uses.ts'
import type { Span } from '@weir/clickhouse/audit/rollups.ts'
import { repairRollup } from '@weir/clickhouse/repair/repair-rollup.ts'
import { insertRows, type RawRow } from '@weir/clickhouse/repair/repair-rows.ts'
import { RepairSession } from '@weir/clickhouse/repair/repair-session.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import { createQuotaCounts, quotaFloors } from '@weir/redis/quota-counts.ts'
import { type AuditPorts, type AuditResult, shardsOf } from './audit-all.ts'
import type { MissingRecords } from './audit-kafka.ts'
import { auditRollups, hourSpan } from './audit-rollups.ts'

/** Records as metering makes rows of them: their own bytes, with their place in Kafka before the closing brace. */
const rowsOf = ({ partition, topicId, records }: MissingRecords): RawRow[] =>
  records.map(({ value, offset }) => {
    const place = `,"topic_id":"${topicId}","partition":${partition},"offset":${offset}}`
    return { offset, line: Buffer.concat([value.subarray(0, -1), Buffer.from(place, 'latin1')]) }
  })

/**
 * Repairs what an audit has found, raw rows first, then what is made of them; reports line by line what it repaired and
 * what it could not repair. May be repeated, also after a crash at any point: each step looks at what is there.
 */
export async function repair(
  ports: AuditPorts,
  found: AuditResult,
  span: Span,
  report: (line: string, isRepaired: boolean) => void,
): Promise<void> {
  const { clickhouse, servers, policy, nowMs } = ports
  const sessions = shardsOf(ports).map((shard) => new RepairSession(shard, `audit:${randomUUID()}`))
  // 1. Raw rows from Kafka. A crash after it leaves rollups that have them twice, or as they should be: step 2 looks.
  for (const missing of found.missing) {
    const { metered, partition } = missing
    const session = sessions[partition % sessions.length]
    if (session === undefined) throw new Error('a cluster has a shard')
    const { inserted, refused, why } = await insertRows(session, metered.table, rowsOf(missing), String(partition))
    const where = `${metered.topic}, partition ${partition}`
    if (inserted > 0) report(`inserted ${inserted} rows again from ${where}`, true)
    if (refused > 0) report(`${where}: ClickHouse refuses ${refused} records (${why})`, false)
  }
  // 2. Rollups, from the raw rows as they are now. A crash in it leaves hours that differ: the next audit finds them.
  for (const session of sessions) {
    await session.catchUp()
    const { differences } = await auditRollups(session.client, span, nowMs(), ports)
    for (const { rollup, difference } of differences) {
      const hour = `${rollup.table} for the hour from ${new Date(difference.hourMs).toISOString()}`
      const outcome = await repairRollup(session, rollup, hourSpan(difference))
      if (outcome === 'repaired') report(`repaired ${hour}`, true)
      if (outcome === 'undetermined') report(`could not compare ${hour}: rows kept arriving`, false)
    }
  }
  // 3. Redis, to the sums of the rows that are there by now. A crash in it leaves counts that the next run raises.
  const { summable } = quotasOf(policy)
  const floors = quotaFloors(await askKnownUnits(clickhouse, summable, nowMs()), summable, rootsOf(policy))
  const raised = (await createQuotaCounts(servers).raise(floors)).filter(({ outcome }) => outcome === 'raised')
  if (raised.length > 0)
    report(`raised in Redis: ${raised.length} ${raised.length === 1 ? 'count' : 'counts'} of quotas`, true)
}
