import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import type { Stack } from './stack.ts'

/** Dollars a million tokens. */
const prices = {
  large: { input_tokens: 3, output_tokens: 15 },
  small: { input_tokens: 0.25, output_tokens: 2 },
} as const
/** What tokens cost, in billionths: exact, as a dollar a million is a thousand of them. */
export const nanosOf = (
  model: string,
  { input_tokens: input, output_tokens: output }: Readonly<Record<string, number>>,
) => {
  const price = model === 'small' ? prices.small : prices.large
  return (input ?? 0) * price.input_tokens * 1_000 + (output ?? 0) * price.output_tokens * 1_000
}

/** The card `usd` of a policy, which refuses other models. */
export const rateCards = {
  usd: {
    currency: 'USD',
    per: 1_000_000,
    unknown: 'refuse',
    prices: Object.entries(prices).map(([model, of]) => ({
      model,
      from: '2026-01-01T00:00:00Z',
      prices: Object.fromEntries(Object.entries(of).map(([unit, price]) => [unit, String(price)])),
    })),
  },
}

/** An admission with what it held, and its settlement. */
export interface Booked {
  readonly id: string
  /** Of the decision. */
  readonly ms: string
  readonly subject: string
  readonly held: string
  readonly settlements: string
  readonly basis: string
  readonly input: string
  readonly output: string
  readonly tokens: string
  readonly usd: string
  readonly heldUsd: string
  readonly model: string
}

/** Each admission with what it held, and its settlement. */
const bookedQuery = `SELECT toString(d.id) AS id, toString(toUnixTimestamp64Milli(d.ts)) AS ms, d.subject AS subject, toString(d.held['tokens']) AS held, toString(c.n) AS settlements, c.basis AS basis,
    toString(c.units['input_tokens']) AS input, toString(c.units['output_tokens']) AS output, toString(c.units['tokens']) AS tokens,
    toString(c.units['usd']) AS usd, toString(d.held['usd']) AS heldUsd, d.dims['model'] AS model
  FROM weir.decisions AS d
  LEFT JOIN (SELECT corrects AS id, count() AS n, any(basis) AS basis, any(units) AS units FROM weir.decisions WHERE count = 0 GROUP BY id) AS c ON c.id = d.id
  WHERE d.count > 0 AND d.outcome = 'allow'`

export async function readBooks({ addresses }: Stack): Promise<readonly Booked[]> {
  const clickhouse = connectClickhouse(addresses.clickhouse, 'failure-suite', 60_000)
  try {
    return await readRows<Booked>(clickhouse, bookedQuery)
  } finally {
    await clickhouse.close()
  }
}
