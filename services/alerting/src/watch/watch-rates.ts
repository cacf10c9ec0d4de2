import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { readChangedRates } from '@weir/clickhouse/rate-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/core/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { repeatUntilStopped } from '../until-stopped.ts'
import { changesMax, lookForChanges, type RateChange, type RateSource } from './rate-changes.ts'

/** Windows are whole minutes. Every process looks: whoever finds a change first claims it. */
const lookEveryMs = 60_000
/** Sooner after a look that failed, while ClickHouse or Redis is away. */
const retryMs = 10_000

const sourceOf = (client: ClickHouseClient): RateSource => ({
  completeness: () => readCompleteness(client, topics.decisions),
  changed: (question) => readChangedRates(client, question),
})

export interface RateWatch {
  /** What keeps watches from being looked at; undefined while nothing does. */
  problem(): string | undefined
  /** Resolves when it has stopped, which `stopping` asks for. */
  readonly stopped: Promise<void>
}

/** Looks every minute at what the policy's watches watch, and raises what it finds. */
export function startRateWatch(options: {
  readonly clickhouse: ClickHouseClient
  readonly policyInForce: () => Policy
  readonly raise: (changes: readonly RateChange[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}): RateWatch {
  const { clickhouse, policyInForce, raise, clock, stopping, log } = options
  const source = sourceOf(clickhouse)
  let problem: string | undefined

  const look = async () => {
    try {
      const { changes, behind } = await lookForChanges(policyInForce(), source, clock.nowMs())
      if (changes.length >= changesMax) log.warn({ changes: changes.length }, 'more has changed than is told')
      await raise(changes)
      problem = behind
      return lookEveryMs
    } catch (error) {
      log.warn({ err: error }, 'watches not looked at, trying again')
      problem = 'ClickHouse or Redis does not answer'
      return retryMs
    }
  }
  return { problem: () => problem, stopped: repeatUntilStopped(look, stopping) }
}
