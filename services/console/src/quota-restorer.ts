import { askKnownUnits } from '@weir/clickhouse/audit/quota-uses.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import { topics } from '@weir/contracts/topics.ts'
import { type QuotaFloor, quotasOf } from '@weir/core/audit/quota.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { DataLossDetector } from '@weir/redis/data-loss-detector.ts'
import { createQuotaCounts, type QuotaServers, quotaFloors } from '@weir/redis/quota-counts.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** Sums over a month of all decisions; no caller waits for them. */
const requestMs = 120_000
/** A refund's record is in the journal some milliseconds after Redis made it; a second for clocks that differ. */
const recordedMs = 1_000
/** Marks are five seconds apart without requests, and metered a second or two later. */
const completeMs = 15_000

/**
 * Watches Redis, and when it has lost its counts raises every calendar quota to what ClickHouse shows as used in the
 * running period. Decisions go on meanwhile. `policy` returns undefined while it was not read yet.
 */
export async function openQuotaRestorer(
  servers: QuotaServers,
  server: ClickhouseServer,
  policy: () => Policy | undefined,
  { run, log, metrics, checkReady }: Service,
): Promise<void> {
  const counters = { losses: 0, raised: 0 }
  registerScraped(metrics, {
    weir_redis_losses_total: { help: 'Times that Redis was found empty or restarted', read: () => counters.losses },
    weir_quotas_raised_total: { help: 'Quota counts raised to what ClickHouse shows', read: () => counters.raised },
  })
  const clickhouse = await run.own(
    'clickhouse for quotas',
    connectClickhouse(server, 'weir-console-quotas', requestMs),
    (client) => client.close(),
  )
  checkReady('clickhouse for quotas', () => {
    const warning = clickhouse.refused()
    return warning === undefined ? undefined : { warning }
  })
  const counts = createQuotaCounts(servers)
  /**
   * What counts were to hold at least at the last look, until a loss is restored. A count that is just that
   * follows a correction or a reset that was not known by then; also where the answer to its raising was lost.
   */
  const asked = new Map<string, QuotaFloor>()
  /**
   * Reads the counts, and waits until ClickHouse has all that Redis had charged and given back by then. Undefined where
   * that takes too long: then any count below its sum is raised.
   */
  const seenBeforeSums = async (signal: AbortSignal) => {
    const floors = [...asked.values()]
    const seen = new Map((await counts.look(floors)).map(({ before }, at) => [floors[at]?.key ?? '', before]))
    const untilMs = Date.now() + recordedMs
    const isComplete = async () =>
      ((await readCompleteness(clickhouse, topics.decisions)).completeThroughMs ?? 0) >= untilMs
    const waiting = { deadlineMs: completeMs, everyMs: 500, signal }
    return (await waitUntil(isComplete, waiting)) === true ? seen : undefined
  }
  /** An empty Redis that is new is no loss; one that lacks what was used is. */
  let mayBeNew = false
  const noteLoss = (why: string) => {
    mayBeNew = false
    counters.losses += 1
    log.warn({ why }, 'Redis may have lost counts: calendar quotas are raised to what ClickHouse shows')
  }
  const detector = new DataLossDetector({
    servers,
    async restore({ isFirst, isLast, signal }) {
      const inForce = policy()
      if (inForce === undefined) throw new Error('the policy was not read yet: nobody knows what the quotas are')
      const { summable, unsummable } = quotasOf(inForce)
      // At once after a loss. Later, a count that a request changes meanwhile is right by what Redis has charged since.
      const seen = isFirst ? undefined : await seenBeforeSums(signal)
      const known = quotaFloors(await askKnownUnits(clickhouse, summable, Date.now()), summable)
      const names = new Set(known.map(({ key }) => key))
      const gone = [...asked.values()].filter(({ key }) => !names.has(key)).map((floor) => ({ ...floor, units: 0 }))
      const floors = [...known, ...gone]
      const before = new Map([...asked].map(([key, { units }]) => [key, units]))
      for (const floor of floors) if (floor.units > (before.get(floor.key) ?? 0)) asked.set(floor.key, floor)
      const answers = await counts.raise(floors, { before, seen })
      for (const floor of floors) asked.set(floor.key, floor)
      const raised = answers.filter(({ outcome }) => outcome === 'raised').length
      if (isLast) asked.clear()
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
  await run.own('quota restorer', detector, (one) => one.stop())
}
