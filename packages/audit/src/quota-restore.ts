import { askKnownUnits } from '@weir/clickhouse/audit/quota-uses.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { QuotaFloor, SummableQuota } from '@weir/core/audit/quota.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { RestorePass } from '@weir/redis/data-loss-detector.ts'
import { createQuotaCounts, type QuotaServers, quotaFloors } from '@weir/redis/quota-counts.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** A refund's record is in the journal some milliseconds after Redis made it; a second for clocks that differ. */
const recordedMs = 1_000
/** Marks are five seconds apart without requests, and metered a second or two later. */
const completeMs = 15_000

/** Restores the counts of quotas after a loss of Redis, in several passes. */
export class QuotaRestore {
  readonly #clickhouse: ClickHouseClient
  readonly #counts: ReturnType<typeof createQuotaCounts>
  /**
   * What counts were to hold at least by the pass before, until a loss is restored: some hundred bytes a count. A count
   * that is just that follows a correction or a reset that was not known by then, also where the answer to its raising
   * was lost.
   */
  readonly #asked = new Map<string, QuotaFloor>()

  constructor(clickhouse: ClickHouseClient, servers: QuotaServers) {
    this.#clickhouse = clickhouse
    this.#counts = createQuotaCounts(servers)
  }

  /**
   * Makes one pass, over the counts of all subjects or of those that `isMeant` says. Resolves to how many counts were
   * looked at, and how many of them raised.
   */
  async run(
    policy: Policy,
    quotas: readonly SummableQuota[],
    { isFirst, isLast, signal }: RestorePass,
    isMeant = (_subject: string): boolean => true,
  ) {
    // At once after a loss. Later, a count that a request changes meanwhile is right by what Redis has charged since.
    const seen = isFirst ? undefined : await this.#seenBeforeSums(signal)
    const uses = await askKnownUnits(this.#clickhouse, quotas, Date.now())
    const known = quotaFloors(uses, quotas, rootsOf(policy)).filter(({ subject }) => isMeant(subject))
    const names = new Set(known.map(({ key }) => key))
    const gone = [...this.#asked.values()].filter(({ key }) => !names.has(key)).map((floor) => ({ ...floor, units: 0 }))
    const floors = [...known, ...gone]
    const before = new Map([...this.#asked].map(([key, { units }]) => [key, units]))
    for (const floor of floors) if (floor.units > (before.get(floor.key) ?? 0)) this.#asked.set(floor.key, floor)
    const answers = await this.#counts.raise(floors, { before, seen })
    for (const floor of floors) this.#asked.set(floor.key, floor)
    if (isLast) this.#asked.clear()
    return { counts: answers.length, raised: answers.filter(({ outcome }) => outcome === 'raised').length }
  }

  /**
   * Reads the counts, and waits until ClickHouse has all that Redis had charged and given back by then. Undefined where
   * that takes too long: then any count below its sum is raised.
   */
  async #seenBeforeSums(signal: AbortSignal): Promise<ReadonlyMap<string, number> | undefined> {
    const floors = [...this.#asked.values()]
    const seen = new Map((await this.#counts.look(floors)).map(({ before }, at) => [floors[at]?.key ?? '', before]))
    const untilMs = Date.now() + recordedMs
    const isComplete = async () =>
      ((await readCompleteness(this.#clickhouse, topics.decisions)).completeThroughMs ?? 0) >= untilMs
    const waiting = { deadlineMs: completeMs, everyMs: 500, signal }
    return (await waitUntil(isComplete, waiting)) === true ? seen : undefined
  }
}
