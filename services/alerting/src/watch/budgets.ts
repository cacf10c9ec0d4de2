import { claimKey, claimLifetimeMs } from '@weir/core/alerts/claim.ts'
import { formatAmount } from '@weir/core/prices/amount.ts'
import { type Budget, reachedPercents } from '@weir/core/prices/budget.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { monthAt, type PricedMonth } from '@weir/core/prices/priced-month.ts'
import { type RouteUsage, totalOf } from '@weir/core/prices/quote.ts'
import { budgetOf, type Policy, pricesOf, type Subject } from '@weir/policy/policy.ts'
import type { BudgetReached } from '../types.ts'

/** A subject with a budget. */
export interface Payer {
  readonly subject: Subject
  readonly prices: PriceList
  readonly budget: Budget
}

/** Returns the subject with its price list and budget; undefined if it has none, or is not in the policy any more. */
export function payerOf(policy: Policy, id: string): Payer | undefined {
  const subject = policy.subjects.get(id)
  const budget = subject === undefined ? undefined : budgetOf(subject)
  const prices = subject === undefined || budget === undefined ? undefined : pricesOf(policy, subject)
  return subject === undefined || budget === undefined || prices === undefined ? undefined : { subject, prices, budget }
}

/** Records of a period may be counted for this long after its end: as long as claims outlive their periods. */
const lastLookMs = 6 * 3_600_000

/** Returns the month that runs now, and the one before while records of it may still come. */
export function monthsToPrice(subject: Subject, nowMs: number): readonly PricedMonth[] {
  const running = monthAt(subject, nowMs)
  return nowMs - running.fromMs < lastLookMs ? [running, monthAt(subject, running.fromMs - 1)] : [running]
}

/**
 * Returns which thresholds the price of a period has reached; undefined for none. The claim has the month and not its
 * first instant, which a change of the subject's zone may move.
 */
export function findReached(
  { subject, prices, budget }: Payer,
  period: PricedMonth,
  usage: readonly RouteUsage[],
): BudgetReached | undefined {
  const spent = totalOf(prices, usage)
  const percents = reachedPercents(spent, budget)
  if (percents.length === 0) return undefined
  const { currency, digits } = prices
  const amount = formatAmount(budget.amount, digits)
  const claim = { subject: subject.id, limit: 'budget', size: `${currency}${amount}`, periodStart: period.name }
  return {
    kind: 'budget',
    subject: subject.id,
    startMs: period.fromMs,
    endMs: period.toMs,
    lifetimeMs: claimLifetimeMs('month'),
    isRecurring: false,
    thresholds: percents.map((percent) => ({ percent, key: claimKey({ ...claim, threshold: `budget${percent}` }) })),
    about: { prices: prices.name, currency, budget: amount, amount: formatAmount(spent, digits), period: period.name },
  }
}
