import type { Explanation } from '@weir/api/decisions.ts'
import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import { formatAmount } from '@weir/core/prices/amount.ts'
import { RateBook } from '@weir/core/prices/rate-book.ts'
import { withRequest } from '@weir/core/prices/rate-card.ts'
import type { Policy } from '@weir/policy/policy.ts'

/**
 * Returns how the rate cards of a policy priced what a decision used; nothing of a card by which it comes to another
 * amount than was recorded, as for what counts as it was held.
 */
export function priceLines(
  { rateCards }: Policy,
  { ts_ms: atMs, cost, dims, units }: Pick<StoredDecision, 'ts_ms' | 'cost' | 'dims' | 'units'>,
): Explanation['prices'] {
  const used = withRequest(new Map(Object.entries(units)), cost)
  const prices = new RateBook(rateCards.values()).priceAll(used, { atMs, values: new Map(Object.entries(dims)) })
  return prices.flatMap(({ card: { name, currency }, nanos, lines }) =>
    (units[name] === nanos ? lines : []).map(({ entry, unit, quantity, price }) => ({
      card: name,
      currency,
      unit,
      quantity,
      price: formatAmount(price),
      amount: formatAmount(BigInt(quantity) * price),
      entry: entry.pattern,
      from: new Date(entry.fromMs).toISOString(),
    })),
  )
}
