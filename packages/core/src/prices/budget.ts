import type { Amount } from './amount.ts'

/** How much a subject means to spend in a period of its price list, and when to say that it comes near. */
export interface Budget {
  /** In the currency of the price list; more than nothing, and never finer than the currency's smallest unit. */
  readonly amount: Amount
  /** Whole percents, ascending. */
  readonly thresholds: readonly number[]
}

/** Returns the percents that are reached by what was spent, highest first. Exact for every amount. */
export const reachedPercents = (spent: Amount, { amount, thresholds }: Budget): readonly number[] =>
  thresholds.filter((percent) => spent * 100n >= amount * BigInt(percent)).toReversed()

/** Returns whether two budgets, or their absence, say the same. */
export const sameBudget = (one: Budget | undefined, other: Budget | undefined): boolean =>
  one?.amount === other?.amount && one?.thresholds.join() === other?.thresholds.join()
