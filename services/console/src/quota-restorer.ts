import { askQuotaUses } from '@weir/clickhouse/audit/quota-uses.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { DataLossDetector } from '@weir/redis/data-loss-detector.ts'
import { createQuotaCounts, type QuotaServers, quotaFloors } from '@weir/redis/quota-counts.ts'
import type { Logger } from '@weir/runtime/logger.ts'

/** Since the start, for metrics. */
export interface RestorerCounters {
  /** How often Redis was found empty or restarted. */
  losses: number
  /** Counts that were below what ClickHouse shows, and were raised to it. */
  raised: number
}

/**
 * Watches Redis, and when it has lost its counts raises every calendar quota to what ClickHouse shows as used in the
 * running period. Decisions go on meanwhile.
 */
export function createQuotaRestorer(ports: {
  readonly servers: QuotaServers
  readonly clickhouse: ClickHouseClient
  /** Undefined while it was not read yet. */
  readonly policy: () => Policy | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly counters: RestorerCounters
}): DataLossDetector {
  const { servers, clickhouse, policy, clock, log, counters } = ports
  const counts = createQuotaCounts(servers)
  /** An empty Redis that is new is no loss; one that lacks what was used is. */
  let mayBeNew = false
  const noteLoss = (why: string) => {
    mayBeNew = false
    counters.losses += 1
    log.warn({ why }, 'Redis may have lost counts: calendar quotas are raised to what ClickHouse shows')
  }
  return new DataLossDetector({
    servers,
    async restore() {
      const known = policy()
      if (known === undefined) throw new Error('the policy was not read yet: nobody knows what the quotas are')
      const { summable, unsummable } = quotasOf(known)
      const uses = await askQuotaUses(clickhouse, summable, clock.nowMs())
      const answers = await counts.raise(quotaFloors(uses, summable))
      const raised = answers.filter(({ outcome }) => outcome === 'raised').length
      counters.raised += raised
      if (mayBeNew && raised > 0) noteLoss('empty')
      const skipped = unsummable.map(({ name, because }) => `${name} ${because}`)
      log.info({ quotas: summable.length, counts: answers.length, raised, skipped }, 'quotas restored')
    },
    onLoss(why) {
      if (why === 'new') mayBeNew = true
      else noteLoss(why)
    },
    onFault: (error) => log.warn({ err: error }, 'quotas cannot be watched or restored now, trying again'),
  })
}
