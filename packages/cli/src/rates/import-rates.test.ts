import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { differingRates, importRates } from './import-rates.ts'

/** As LiteLLM's map has it, with prices of our own. */
const map = `{
  "sample_spec": { "input_cost_per_token": 0.0, "litellm_provider": "one of https://docs.litellm.ai/docs/providers" },
  "small": {
    "max_tokens": 100, "max_input_tokens": 400000, "max_output_tokens": 128000, "litellm_provider": "openai",
    "input_cost_per_token": 2.5e-07, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 2.5e-08,
    "input_cost_per_token_flex": 1.25e-07, "output_cost_per_token_flex": 1e-06, "mode": "chat",
    "output_cost_per_token_batches": 1e-06, "search_context_cost_per_query": { "search_context_size_low": 0.01 }
  },
  "large": {
    "max_input_tokens": "many", "litellm_provider": "anthropic", "input_cost_per_token": 3e-06,
    "output_cost_per_token": 0.000015, "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06, "output_cost_per_reasoning_token": 1e-14,
    "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05
  },
  "xai/own": { "litellm_provider": "xai", "input_cost_per_token": 0.0, "input_cost_per_request": 0.005 },
  "picture": { "litellm_provider": "openai", "input_cost_per_pixel": 1e-08 }
}`
const from = '2026-09-01T00:00:00Z'

test('Prices are as exact as the map writes them, with the steps, the tiers and the bounds of models', () => {
  expect(importRates(map, { providers: ['openai', 'anthropic'], from })).toEqual({
    usd: {
      currency: 'USD',
      per: 1_000_000,
      unknown: 'refuse',
      models: { small: { context: 400_000, maxOutput: 128_000 } },
      prices: [
        {
          model: 'small',
          from,
          prices: { input_tokens: '0.25', output_tokens: '2', cache_read_input_tokens: '0.025' },
        },
        {
          model: 'small@flex',
          from,
          prices: { input_tokens: '0.125', output_tokens: '1', cache_read_input_tokens: '0.025' },
        },
        {
          model: 'large',
          from,
          prices: {
            input_tokens: '3',
            output_tokens: '15',
            cache_creation_input_tokens: '3.75',
            cache_creation_1h_input_tokens: '6',
          },
          above: { input_tokens: 200_000, prices: { input_tokens: '6', output_tokens: '22.5' } },
        },
      ],
    },
  })
})

test("A single supplier's models have the names of its API", () => {
  const prices = (providers: string[]) => JSON.stringify(importRates(map, { providers, from }))
  expect(prices(['xai'])).toContain('"prices":[{"model":"own","from"')
  expect(prices(['xai', 'openai'])).toContain('"model":"xai/own"')
})

test.each(['', '[]', '{"a": 1}'])('A file without prices (%s) is refused', (text) => {
  expect(() => importRates(text, { providers: [], from })).toThrow('The file has no prices of models.')
})

test('Prices that differ are those in force of the models that the file has', () => {
  const cardsOf = (rateCards: object) => [
    ...requirePolicy(JSON.stringify({ version: 1, rateCards }), 'x').rateCards.values(),
  ]
  const [file] = cardsOf(importRates(map, { providers: [], from: '1970-01-01T00:00:00Z' }))
  const card = (currency: string, prices: object[]) => ({ currency, per: 1_000_000, unknown: 'count', prices })
  const ours = cardsOf({
    usd: card('USD', [
      { model: 'sm*', from, prices: { input_tokens: '0.25', output_tokens: '1.5', requests: '7' } },
      { model: 'large', from: '2030-01-01T00:00:00Z', prices: { input_tokens: '1' } },
    ]),
    eur: card('EUR', [{ model: 'small', from, prices: { input_tokens: '1' } }]),
  })
  expect(file && differingRates(ours, file, Date.parse('2026-10-01T00:00:00Z'))).toEqual([
    { card: 'usd', model: 'small', unit: 'output_tokens', now: '1.5', file: '2' },
    { card: 'usd', model: 'small', unit: 'requests', now: '7', file: '0' },
    { card: 'usd', model: 'small', unit: 'cache_read_input_tokens', now: '0', file: '0.025' },
    { card: 'usd', model: 'small@flex', unit: 'input_tokens', now: '0.25', file: '0.125' },
    { card: 'usd', model: 'small@flex', unit: 'output_tokens', now: '1.5', file: '1' },
    { card: 'usd', model: 'small@flex', unit: 'requests', now: '7', file: '0' },
    { card: 'usd', model: 'small@flex', unit: 'cache_read_input_tokens', now: '0', file: '0.025' },
  ])
})
