import { askKnownUnits, askUnknownUnits } from '@weir/clickhouse/audit/quota-uses.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import {
  type QuotaCount,
  type QuotaFloor,
  type QuotaReading,
  quotaDiscrepancies,
  quotasOf,
} from '@weir/core/audit/quota.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { subjectInKey } from '@weir/redis/keys.ts'
import { createQuotaCounts, type QuotaServers, quotaFloors } from '@weir/redis/quota-counts.ts'
import { limitOfKey } from '@weir/redis/recorded-scope.ts'

/** Units that Redis has and ClickHouse has not are metered within a second or two; a pipeline that lags gets longer. */
const readingsMaxAbove = 10
/** A count that is too low can only wait for a correction that is on its way. */
const readingsMaxBelow = 2
const monthMs = 32 * 24 * 3_600_000

const isAbove = ({ expected, found }: Discrepancy) => Number(found) > Number(expected)

const noCount: QuotaCount = { outcome: 'left', before: 0, endMs: 0, now: 0 }

/** A floor of 0 for a count that Redis has and that no record explains. */
function unexplained(key: string, nowMs: number): QuotaFloor {
  return {
    subject: subjectInKey(key),
    limit: limitOfKey(key),
    keyId: '',
    route: '',
    method: '',
    endMs: nowMs + monthMs,
    units: 0,
    key,
  }
}

/** The end of an unexplained count is not known: the period that runs there is meant. */
const ofItsOwnPeriod = (count: QuotaCount): QuotaCount =>
  count.outcome === 'other' ? { ...count, outcome: 'left' } : count

/**
 * Compares Redis's calendar quota counts with the records' sums. The first counts are read before the sums and the
 * last ones after them; what differs is looked at again, after `pause`, while it may be on its way to ClickHouse.
 */
export async function auditQuotas(ports: {
  readonly clickhouse: ClickHouseClient
  readonly servers: QuotaServers
  readonly policy: Policy
  readonly nowMs: () => number
  readonly pause: () => Promise<void>
}) {
  const { clickhouse, servers, policy, nowMs, pause } = ports
  const { summable } = quotasOf(policy)
  const counts = createQuotaCounts(servers)
  const names = new Set(summable.map(({ limit }) => limit.name))
  const leased = new Set(summable.filter(({ limit }) => limit.lease > 0).map(({ limit }) => limit.name))
  const first = new Map<string, QuotaCount>()
  const present = (await counts.find(names)).map((key) => unexplained(key, nowMs()))
  for (const [at, count] of (await counts.look(present)).entries()) {
    const key = present[at]?.key
    if (key !== undefined) first.set(key, ofItsOwnPeriod(count))
  }

  const look = async () => {
    const floors = quotaFloors(await askKnownUnits(clickhouse, summable, nowMs()), summable, rootsOf(policy))
    const unknown = await askUnknownUnits(clickhouse, nowMs() - monthMs)
    const known = new Set(floors.map(({ key }) => key))
    const others = [...first.keys()].filter((key) => !known.has(key))
    const all = [...floors, ...others.map((key) => unexplained(key, nowMs()))]
    const last = await counts.look(all)
    const looks = all.flatMap((floor, at): QuotaReading[] => {
      const count = last[at]
      if (count === undefined) return []
      const before = first.get(floor.key) ?? noCount
      const now = at < floors.length ? count : ofItsOwnPeriod(count)
      const units = unknown.get(floor.subject) ?? 0
      return [{ floor, first: before, last: now, unknown: units, isLeased: leased.has(floor.limit) }]
    })
    return { findings: quotaDiscrepancies(looks), compared: all.length }
  }

  let result = await look()
  for (let looks = 1; looks < (result.findings.some(isAbove) ? readingsMaxAbove : readingsMaxBelow); looks += 1) {
    if (result.findings.length === 0) break
    await pause()
    const before = new Set(result.findings.map(({ where }) => where))
    const next = await look()
    // Only what differs every time.
    result = { ...next, findings: next.findings.filter(({ where }) => before.has(where)) }
  }
  const above = result.findings.filter(isAbove)
  const units = above.reduce((sum, { expected, found }) => sum + Number(found) - Number(expected), 0)
  return {
    findings: result.findings.filter((finding) => !isAbove(finding)),
    /**
     * Counts that are above what the records say, and by how many units in all. These are no discrepancies: a process
     * that is killed between charge and record leaves a charge without a record. No caller got an answer, so nothing is
     * to be recorded; the subject has that much less until the period ends.
     */
    above: { counts: above.length, units },
    compared: result.compared,
  }
}
