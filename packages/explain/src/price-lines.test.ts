import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { priceLines } from './price-lines.ts'

const from = '2026-09-01T00:00:00Z'
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    rateCards: {
      usd: {
        currency: 'USD',
        per: 1_000_000,
        unknown: 'refuse',
        prices: [
          { model: 'm*', from: '2026-01-01T00:00:00Z', prices: { input_tokens: '9' } },
          { model: 'm*', from, prices: { input_tokens: '3', cache_read_input_tokens: '0.3' } },
          { from, prices: { cost: '1000000' } },
        ],
      },
      eur: { currency: 'EUR', unknown: 'count', prices: [{ model: 'm', from, prices: { input_tokens: '1' } }] },
    },
  }),
  'weir.yaml',
)
const decision = (usd: number) => ({
  ts_ms: Date.parse('2026-10-01T00:00:00Z'),
  cost: 2,
  dims: { model: 'mini' },
  units: { input_tokens: 10, cache_read_input_tokens: 4, usd },
})
const nanos = 2 * 1_000_000_000 + 6 * 3_000 + 4 * 300

test('Each line has its entry, and what of the whole its parts leave', () => {
  const of = { card: 'usd', currency: 'USD', from: '2026-09-01T00:00:00.000Z' }
  expect(priceLines(policy, decision(nanos))).toEqual([
    { ...of, unit: 'input_tokens', quantity: 6, price: '0.000003', amount: '0.000018', entry: 'm*' },
    { ...of, unit: 'cache_read_input_tokens', quantity: 4, price: '0.0000003', amount: '0.0000012', entry: 'm*' },
    { ...of, unit: 'cost', quantity: 2, price: '1', amount: '2', entry: '' },
  ])
})

test('Nothing is said of an amount that was not priced so, such as one that was held', () => {
  expect(priceLines(policy, decision(nanos + 1))).toEqual([])
})
