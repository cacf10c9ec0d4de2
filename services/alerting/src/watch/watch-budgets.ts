import { setImmediate as nextTurn } from 'node:timers/promises'
import { hasBudgets, type Policy } from '@weir/policy/policy.ts'
import type { BudgetReached } from '../types.ts'
import { askUsageOf } from './budget-queries.ts'
import { findReached, monthsToPrice, payerOf } from './budgets.ts'
import { createRoundLock, startRounds, type WatchOptions } from './rounds.ts'

/** Begins no query after this long, so that ClickHouse works on budgets a third of the time at most. */
const roundMs = 20_000
/** Subjects of a query: with the longest ids a request of 200 kB, and some seconds of ClickHouse's time at most. */
const subjectsMax = 500
/** Subjects passed over in one turn of the event loop: a few milliseconds. */
const passedMax = 10_000

const lockKey = 'weir:1:watches:budgets'

/** Goes over all subjects with a budget, page by page, and begins again after the last. */
function createSweep(policyInForce: () => Policy) {
  let ids: Iterator<string> | undefined
  return async function nextPage(): Promise<{ readonly page: readonly string[]; readonly isLast: boolean }> {
    // Goes on in the same map while subjects come and go.
    ids ??= policyInForce().subjects.keys()[Symbol.iterator]()
    const page: string[] = []
    for (let passed = 1; page.length < subjectsMax; passed += 1) {
      const { done, value } = ids.next()
      if (done === true) {
        ids = undefined
        return { page, isLast: true }
      }
      if (payerOf(policyInForce(), value) !== undefined) page.push(value)
      if (passed % passedMax === 0) await nextTurn()
    }
    return { page, isLast: false }
  }
}

/** Finds the budgets that these subjects have reached. Rejects if ClickHouse does not answer. */
async function findAll({ clickhouse, policyInForce, clock }: WatchOptions<BudgetReached>, ids: readonly string[]) {
  const policy = policyInForce()
  const priced = ids.flatMap((id) => {
    const payer = payerOf(policy, id)
    if (payer === undefined) return []
    return monthsToPrice(payer.subject, clock.nowMs()).map((period, at) => ({ payer, period, at }))
  })
  const reached: BudgetReached[] = []
  // A query has one period of a subject: first those that run, then those that have just ended.
  for (const asked of Map.groupBy(priced, ({ at }) => at).values()) {
    const usage = await askUsageOf(
      clickhouse,
      asked.map(({ payer, period: { fromMs, toMs } }) => ({ subject: payer.subject.id, fromMs, toMs })),
    )
    for (const { payer, period } of asked) {
      const found = findReached(payer, period, usage.get(payer.subject.id) ?? [])
      if (found !== undefined) reached.push(found)
    }
  }
  return reached
}

/** Returns a round: it goes over all budgets, or as many as there is time for; the next one goes on behind them. */
function createRound(options: WatchOptions<BudgetReached>) {
  const { policyInForce, raise, clock, stopping } = options
  const nextPage = createSweep(policyInForce)
  /** Not looked at yet. A round that fails leaves them to the next. */
  let waiting: readonly string[] = []
  let isLast = false
  let atOnce = subjectsMax
  return async function round(): Promise<void> {
    const untilMs = clock.nowMs() + roundMs
    do {
      if (waiting.length === 0) ({ page: waiting, isLast } = await nextPage())
      const ids = waiting.slice(0, atOnce)
      try {
        if (ids.length > 0) await raise(await findAll(options, ids))
      } catch (error) {
        // What is too much for one query is less the next time.
        atOnce = Math.ceil(atOnce / 2)
        throw error
      }
      atOnce = Math.min(subjectsMax, atOnce * 2)
      waiting = waiting.slice(ids.length)
    } while (!(isLast && waiting.length === 0) && clock.nowMs() < untilMs && !stopping.aborted)
  }
}

/**
 * Asks ClickHouse every minute what the running periods of subjects with a budget cost, and raises what has reached a
 * threshold. One process does, as long as it lives; if two do, claims keep their alerts one.
 */
export async function startBudgetWatch(options: WatchOptions<BudgetReached>) {
  const { redis, policyInForce, stopping, log } = options
  const round = createRound(options)
  const hasLock = createRoundLock(redis, lockKey)
  const turn = async () => {
    if (hasBudgets(policyInForce()) && (await hasLock())) await round()
    return undefined
  }
  return startRounds(turn, { what: 'budgets not evaluated', stopping, log })
}
