import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { hasGaps, readChangedRates, readPresence } from '@weir/clickhouse/rate-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Policy, Watch } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { repeatUntilStopped } from '../until-stopped.ts'
import type { EvaluationLock } from './evaluation-lock.ts'
import {
  changesMax,
  endsToLookAt,
  lastWholeMinute,
  lookForChanges,
  type RateChange,
  type RateSource,
} from './rate-changes.ts'

/** Windows are whole minutes. */
const lookEveryMs = 60_000
/** Pause while Redis or ClickHouse is unavailable, as it may be at the start. */
const retryMs = 5_000
/** A stop waits up to this long for an evaluation in progress; the next process evaluates the same windows. */
const stopMs = 2_000

const sourceOf = (client: ClickHouseClient): RateSource => ({
  presence: (sinceMs) => readPresence(client, topics.decisions, sinceMs),
  hasGaps: (during) => hasGaps(client, topics.decisions, during),
  changed: (question) => readChangedRates(client, question),
})

export interface RateWatch {
  /** Returns what keeps watches from being evaluated; undefined while nothing does. */
  problem(): string | undefined
  /** Resolves after `stopping` aborted and the evaluation ended. */
  readonly stopped: Promise<void>
}

interface RateWatchOptions {
  readonly clickhouse: ClickHouseClient
  readonly policyInForce: () => Pick<Policy, 'watches'>
  readonly lock: EvaluationLock
  readonly raise: (changes: readonly RateChange[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Evaluates the policy's watches every minute, and raises the changes that they find. */
export function startRateWatch(options: RateWatchOptions): RateWatch {
  const { clickhouse, policyInForce, lock, raise, clock, stopping, log } = options
  const source = sourceOf(clickhouse)
  let problems: readonly string[] = []

  /** Evaluates every window since the last one. Returns why the last was not evaluated, if so. */
  const lookAt = async (watch: Watch, lookedMs: number | undefined, complete: Completeness, newestMs: number) => {
    let problem: string | undefined
    for (const endMs of endsToLookAt(lookedMs, newestMs)) {
      if (stopping.aborted) return problem
      const look = await lookForChanges(watch, source, complete, endMs)
      if (look.kind === 'looked') await raise(look.changes)
      problem = look.kind === 'unknown' ? `${watch.name}: ${look.why}` : undefined
      if (look.kind === 'looked' && look.changes.length >= changesMax) {
        log.warn({ watch: watch.name }, 'more subjects have changed than are alerted together')
      }
      // Only now: after a crash before this, the next process evaluates the same window again.
      await lock.looked(watch.name, endMs)
    }
    return problem
  }

  const lookAtAll = async (watches: readonly Watch[]) => {
    const looked = await lock.take()
    if (looked === undefined) return []
    const complete = await readCompleteness(clickhouse, topics.decisions)
    const newestMs = lastWholeMinute(complete, clock.nowMs())
    if (newestMs === undefined) {
      const until = complete.completeThroughMs
      return [
        `decisions are complete ${until === undefined ? 'for no time' : `until ${new Date(until).toISOString()} only`}`,
      ]
    }
    const found: string[] = []
    for (const watch of watches) {
      const problem = await lookAt(watch, looked.get(watch.name), complete, newestMs).catch((error: unknown) => {
        log.warn({ err: error, watch: watch.name }, 'watch not looked at, trying again')
        return `${watch.name}: the last look failed, see the log`
      })
      if (problem !== undefined) found.push(problem)
    }
    return found
  }

  const looking = repeatUntilStopped(async () => {
    try {
      const watches = [...policyInForce().watches.values()]
      problems = watches.length === 0 ? [] : await lookAtAll(watches)
      return lookEveryMs
    } catch (error) {
      log.warn({ err: error }, 'watches not looked at, trying again')
      problems = ['the last look failed, see the log']
      return retryMs
    }
  }, stopping)
  const givenUp = new Promise<void>((resolve) => {
    stopping.addEventListener('abort', () => void pause(stopMs, undefined, { ref: false }).then(() => resolve()))
  })
  return {
    problem: () => (problems.length === 0 ? undefined : problems.join('; ')),
    stopped: Promise.race([looking, givenUp]),
  }
}
