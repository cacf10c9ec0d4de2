import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Watch } from '@weir/policy/policy.ts'
import { type RedisServers, serverFinder } from '@weir/redis/limit-connection.ts'
import type { RateChange } from '../types.ts'
import { changesMax, evaluateWindow, lastWholeMinute, rateSource, windowEndsToEvaluate } from './rate-changes.ts'
import { startRounds, type WatchOptions } from './rounds.ts'

const lockKey = 'weir:1:watches:turn'
const evaluatedKey = 'weir:1:watches:looked'
/** Evaluations are a minute apart; the lock of a process that dies expires before the next one. */
const lockMs = 50_000
/** Longer than the age up to which windows are evaluated. */
const evaluatedKeptMs = 3_600_000

/**
 * Decides in Redis which process evaluates the watches. If it dies, the next process evaluates the same windows, and
 * raises the same alerts under the same ids.
 */
export function createEvaluationLock(redis: RedisServers) {
  const serverOf = serverFinder(redis)
  return {
    /** Returns until when each watch was evaluated if this process gets the lock; else undefined. */
    async take(): Promise<ReadonlyMap<string, number> | undefined> {
      if ((await serverOf(lockKey).set(lockKey, '1', 'PX', lockMs, 'NX')) !== 'OK') return undefined
      const evaluated = await serverOf(evaluatedKey).hgetall(evaluatedKey)
      return new Map(Object.entries(evaluated).map(([watch, endMs]) => [watch, Number(endMs)]))
    },
    /** Stores that a watch was evaluated until `endMs` and its alerts are raised. */
    async storeEvaluated(watch: string, endMs: number): Promise<void> {
      const both = serverOf(evaluatedKey).multi().hset(evaluatedKey, watch, endMs)
      await both.pexpire(evaluatedKey, evaluatedKeptMs).exec()
    },
  }
}

/** Returns the function that evaluates watches when this process gets the lock, and returns what prevented that. */
function createEvaluator({ clickhouse, redis, raise, clock, stopping, log }: WatchOptions<RateChange>) {
  const lock = createEvaluationLock(redis)
  const source = rateSource(clickhouse)

  /** Evaluates every window since the last one. Returns why the last was not evaluated, if so. */
  const evaluate = async (watch: Watch, evaluatedMs: number | undefined, complete: Completeness, newestMs: number) => {
    let problem: string | undefined
    for (const endMs of windowEndsToEvaluate(evaluatedMs, newestMs)) {
      if (stopping.aborted) return problem
      const evaluation = await evaluateWindow(watch, source, complete, endMs)
      if (evaluation.kind === 'evaluated') await raise(evaluation.changes)
      problem = evaluation.kind === 'unknown' ? `${watch.name}: ${evaluation.why}` : undefined
      if (evaluation.kind === 'evaluated' && evaluation.changes.length >= changesMax) {
        log.warn({ watch: watch.name }, 'too many subjects changed to alert together')
      }
      // Only now: after a crash before this, the next process evaluates the same window again.
      await lock.storeEvaluated(watch.name, endMs)
    }
    return problem
  }

  return async function evaluateAll(watches: readonly Watch[]): Promise<readonly string[]> {
    const evaluated = await lock.take()
    if (evaluated === undefined) return []
    const complete = await readCompleteness(clickhouse, topics.decisions)
    const newestMs = lastWholeMinute(complete, clock.nowMs())
    if (newestMs === undefined) {
      const untilMs = complete.completeThroughMs
      const until = untilMs === undefined ? 'for no time' : `until ${new Date(untilMs).toISOString()} only`
      return [`decisions are complete ${until}`]
    }
    const found: string[] = []
    for (const watch of watches) {
      const problem = await evaluate(watch, evaluated.get(watch.name), complete, newestMs).catch((error: unknown) => {
        log.warn({ err: error, watch: watch.name }, 'watch not evaluated, retrying')
        return `${watch.name}: the last evaluation failed; see the log`
      })
      if (problem !== undefined) found.push(problem)
    }
    return found
  }
}

/** Evaluates the policy's watches every minute, and raises the changes that they find. */
export async function startRateWatch(options: WatchOptions<RateChange>) {
  const { policyInForce, stopping, log } = options
  const evaluateAll = createEvaluator(options)
  const round = async () => {
    const watches = [...policyInForce().watches.values()]
    const problems = watches.length === 0 ? [] : await evaluateAll(watches)
    return problems.length === 0 ? undefined : problems.join('; ')
  }
  return startRounds(round, { what: 'watches not evaluated', stopping, log })
}
