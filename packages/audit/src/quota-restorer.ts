import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { DataLossDetector } from '@weir/redis/data-loss-detector.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { warningOf } from '@weir/runtime/ops-server.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { QuotaRestore } from './quota-restore.ts'

/** Counts from the start of the process. */
export interface RestoreCounters {
  /** Times that Redis was found empty or restarted. */
  losses: number
  /** Looks at all quota counts after a loss. */
  restores: number
  /** Counts raised to what ClickHouse shows. */
  raised: number
}

/** Sums over a month of all decisions; no caller waits for them. */
const requestMs = 120_000

/**
 * Watches Redis, and when it has lost its counts, or with `restoreAll`, raises every calendar quota to what ClickHouse
 * shows as used in the running period. Decisions go on meanwhile. `policy` returns undefined while it was not read yet.
 */
export async function openQuotaRestorer(
  servers: QuotaServers,
  server: ClickhouseServer,
  policy: () => Policy | undefined,
  { run, log, checkReady }: Service,
): Promise<{ readonly counters: Readonly<RestoreCounters>; restoreAll(): void }> {
  const counters: RestoreCounters = { losses: 0, restores: 0, raised: 0 }
  const clickhouse = await run.own(
    'clickhouse for quotas',
    connectClickhouse(server, 'weir-console-quotas', requestMs),
    (client) => client.close(),
  )
  checkReady('clickhouse for quotas', () => warningOf(clickhouse.refused()))
  const restoring = new QuotaRestore(clickhouse, servers)
  /** An empty Redis that is new is no loss; one that lacks what was used is. */
  let mayBeNew = false
  const noteLoss = (why: string) => {
    mayBeNew = false
    counters.losses += 1
    log.warn({ why }, 'Redis may have lost counts: calendar quotas are raised to what ClickHouse shows')
  }
  const detector = new DataLossDetector({
    servers,
    async restore(pass) {
      const inForce = policy()
      if (inForce === undefined) throw new Error('the policy was not read yet: the quotas are unknown')
      const { summable, unsummable } = quotasOf(inForce)
      const done = await restoring.run(inForce, summable, pass)
      // One that a further loss has ended is repeated.
      if (!pass.signal.aborted) counters.restores += 1
      counters.raised += done.raised
      if (mayBeNew && done.raised > 0) noteLoss('empty')
      const skipped = unsummable.map(({ name, because }) => `${name} ${because}`)
      log.info({ quotas: summable.length, ...done, skipped }, 'quotas restored')
    },
    onLoss(why) {
      if (why === 'new') mayBeNew = true
      else noteLoss(why)
    },
    onFault: (error) => log.warn({ err: error }, 'quotas not watched or restored, retrying'),
  })
  await run.own('quota restorer', detector, (one) => one.stop())
  return { counters, restoreAll: () => detector.restoreAll() }
}
