import type { PriceList } from '@weir/core/prices/price-list.ts'
import { policyOf } from '@weir/explain/policy-facts.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import type { PolicyAt } from '@weir/policy-changes/history-queries.ts'

/** Returns the price list that each subject had in a policy of before, where it had one. */
export function formerPrices(
  policies: ReadonlyMap<string, Pick<PolicyAt, 'entities'>>,
): ReadonlyMap<string, PriceList> {
  const lists = new Map<string, PriceList>()
  for (const [id, then] of policies) {
    const policy = policyOf(then)
    const subject = policy?.subjects.get(id)
    const list = policy === undefined || subject === undefined ? undefined : pricesOf(policy, subject)
    if (list !== undefined) lists.set(id, list)
  }
  return lists
}
