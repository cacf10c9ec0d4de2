import { expect, test } from 'vitest'
import { requirePolicy } from './require-policy.ts'

const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    rateCards: {
      usd: {
        currency: 'USD',
        per: 1_000_000,
        unknown: 'default',
        models: { 'sonnet*': { context: 1_000_000, maxOutput: 64_000 }, mini: { context: 5 } },
        prices: [
          {
            model: 'sonnet*',
            from: '2026-09-01T00:00:00Z',
            prices: { input_tokens: '3', output_tokens: '0.000001' },
            above: { input_tokens: 200_000, prices: { input_tokens: '6' } },
          },
          { tool: 'search_*', from: '2026-09-01T00:00:00Z', prices: { calls: '2000' } },
          { dimension: { team: 'a' }, from: '2026-09-01T00:00:00Z', prices: { rows: '1' } },
          { from: '2026-09-01T00:00:00Z', prices: { requests: '100', cost: '0' } },
          { model: '*', from: '2026-01-01T00:00:00Z', prices: { input_tokens: '15' } },
        ],
      },
    },
    limits: {
      month: {
        algorithm: 'fixed_window',
        period: 'month',
        unit: 'usd',
        size: '2000.00',
        hold: '0.5',
        thresholds: ['50%', '1500.000000001'],
      },
      hour: { algorithm: 'sliding_window', window: '1h', unit: 'usd', size: '9000000', onUnavailable: 'allow' },
      tokens: { algorithm: 'fixed_window', period: 'month', unit: 'tokens', size: 5 },
    },
    plans: { team: { limits: ['month', 'hour'] } },
    subjects: { acme: { plan: 'team', limits: { month: { size: '20.00' } } } },
  }),
  'weir.yaml',
)

test('Prices are exact per unit, and a step has those that it does not change', () => {
  const fromMs = Date.parse('2026-09-01T00:00:00Z')
  const [sonnet, tool, team, every] = policy.rateCards.get('usd')?.entries ?? []
  expect(sonnet).toEqual({
    dimension: 'model',
    pattern: 'sonnet*',
    fromMs,
    prices: new Map([
      ['input_tokens', 3_000_000n],
      ['output_tokens', 1n],
    ]),
    above: {
      inputTokens: 200_000,
      prices: new Map([
        ['input_tokens', 6_000_000n],
        ['output_tokens', 1n],
      ]),
    },
  })
  expect([tool, team, every].map((one) => [one?.dimension, one?.pattern])).toEqual([
    ['tool', 'search_*'],
    ['team', 'a'],
    ['', ''],
  ])
  expect(policy.rateCards.get('usd')).toMatchObject({ name: 'usd', currency: 'USD', unknown: 'default' })
  expect([...(policy.rateCards.get('usd')?.models ?? [])]).toEqual([
    ['sonnet*', { context: 1_000_000, maxOutput: 64_000 }],
    ['mini', { context: 5 }],
  ])
})

test('A limit of money is in whole nano-units, and denies without Redis', () => {
  expect(policy.limits.get('month')).toMatchObject({
    unit: 'usd',
    currency: 'USD',
    size: 2_000_000_000_000,
    hold: 500_000_000,
    onUnavailable: 'deny',
    thresholds: [{ percent: 50 }, { units: 1_500_000_000_001 }],
  })
  expect(policy.limits.get('hour')).toMatchObject({ size: 9_000_000_000_000_000, onUnavailable: 'allow' })
  expect(policy.limits.get('tokens')).not.toHaveProperty('currency')
  expect(policy.subjects.get('acme')?.ownLimits.get('month')).toMatchObject({ size: 20_000_000_000, currency: 'USD' })
})
