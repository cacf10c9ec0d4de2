import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import { quotasOf } from '@weir/core/audit/quota.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { DataLossDetector, type RestorePass } from '@weir/redis/data-loss-detector.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { warningOf } from '@weir/runtime/ops-server.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { MovedQuotas } from './moved-quotas.ts'
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
 * Watches Redis, and when it has lost its counts, raises every calendar quota to what ClickHouse shows as used in the
 * running period; with `restoreMoved` those of subjects that were moved to another tree, and of all below them.
 * Decisions go on meanwhile. `policy` returns undefined while it was not read yet.
 */
export async function openQuotaRestorer(
  servers: QuotaServers,
  server: ClickhouseServer,
  policy: () => Policy | undefined,
  { run, log, checkReady }: Service,
): Promise<{ readonly counters: Readonly<RestoreCounters>; restoreMoved(subjects: readonly string[]): void }> {
  const counters: RestoreCounters = { losses: 0, restores: 0, raised: 0 }
  const clickhouse = await run.own(
    'clickhouse for quotas',
    connectClickhouse(server, 'weir-console-quotas', requestMs),
    (client) => client.close(),
  )
  checkReady('clickhouse for quotas', () => warningOf(clickhouse.refused()))
  /** An empty Redis that is new is no loss; one that lacks what was used is. */
  let mayBeNew = false
  const noteLoss = (why: string) => {
    mayBeNew = false
    counters.losses += 1
    log.warn({ why }, 'Redis may have lost counts: calendar quotas are raised to what ClickHouse shows')
  }
  const restoreWith = async (restoring: QuotaRestore, pass: RestorePass, moved?: ReadonlySet<string>) => {
    const inForce = policy()
    if (inForce === undefined) throw new Error('the policy was not read yet: the quotas are unknown')
    const { summable, unsummable } = quotasOf(inForce)
    const done = await restoring.run(inForce, summable, pass, moved && isBelow(inForce, moved))
    // One that a further loss has ended is repeated.
    if (!pass.signal.aborted) counters.restores += 1
    counters.raised += done.raised
    const skipped = unsummable.map(({ name, because }) => `${name} ${because}`)
    log.info({ quotas: summable.length, ...done, moved: moved?.size, skipped }, 'quotas restored')
    return done
  }
  const onFault = (error: unknown) => log.warn({ err: error }, 'quotas not watched or restored, retrying')
  const ofLosses = new QuotaRestore(clickhouse, servers)
  const detector = new DataLossDetector({
    servers,
    async restore(pass) {
      const { raised } = await restoreWith(ofLosses, pass)
      if (mayBeNew && raised > 0) noteLoss('empty')
    },
    onLoss(why) {
      if (why === 'new') mayBeNew = true
      else noteLoss(why)
    },
    onFault,
  })
  await run.own('quota restorer', detector, (one) => one.stop())
  const ofMoves = new QuotaRestore(clickhouse, servers)
  const moves = new MovedQuotas(async (pass, moved) => void (await restoreWith(ofMoves, pass, moved)), onFault)
  await run.own('quotas of moved subjects', moves, (one) => one.stop())
  return { counters, restoreMoved: (subjects) => moves.add(subjects) }
}

/** Whether a subject is one of these, or below one. */
const isBelow = (policy: Policy, these: ReadonlySet<string>) => (id: string) =>
  these.has(id) || ancestorsOf(policy.subjects.get(id) ?? {}).some((above) => these.has(above.id))
