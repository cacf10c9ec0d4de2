import { expect, test } from 'vitest'
import { TokenUsage } from './token-usage.ts'

const reported = (input: number, output: number) =>
  ({
    units: new Map([
      ['input_tokens', input],
      ['output_tokens', output],
      ['tokens', input + output],
    ]),
    basis: 'reported',
  }) as const

const sumsOf = (tokens: TokenUsage, presets: readonly string[]) =>
  tokens.series(presets).map(([labels, { sum, count }]) => [labels.join(' '), sum, count])

test('Tokens are counted by provider, operation and type, and those of other presets are not', () => {
  const tokens = new TokenUsage()
  tokens.observe('openai', '/v1/chat/completions?a=/embeddings', reported(5, 3))
  tokens.observe('openai', '/v1/responses', reported(1, 1))
  tokens.observe('openai', '/v1/embeddings?b', reported(7, 0))
  tokens.observe('anthropic', '/v1/messages', reported(100, 20))
  tokens.observe('mcp', '/mcp', reported(9, 9))
  tokens.observe(undefined, '/v1/render', reported(9, 9))
  expect(sumsOf(tokens, ['openai', 'anthropic', 'mcp'])).toEqual([
    ['openai chat input', 6, 2],
    ['openai chat output', 4, 2],
    ['openai embeddings input', 7, 1],
    ['openai embeddings output', 0, 0],
    ['anthropic chat input', 100, 1],
    ['anthropic chat output', 20, 1],
  ])
})

test('Only tokens that a response said are counted, and a failure that used none is not', () => {
  const tokens = new TokenUsage()
  for (const basis of ['counted', 'bound'] as const) tokens.observe('openai', '/v1/chat', { ...reported(5, 3), basis })
  tokens.observe('openai', '/v1/chat', reported(0, 0))
  tokens.observe('openai', '/v1/chat', { units: new Map(), basis: 'reported' })
  expect(sumsOf(tokens, ['openai']).map(([, sum, count]) => [sum, count])).toEqual(Array(4).fill([0, 0]))
})

test('A provider has series once a route has its preset, and keeps them', () => {
  const tokens = new TokenUsage()
  expect(sumsOf(tokens, ['', 'none', 'mcp'])).toEqual([])
  expect(sumsOf(tokens, ['anthropic']).map(([name]) => name)).toEqual(['anthropic chat input', 'anthropic chat output'])
  expect(sumsOf(tokens, [])).toHaveLength(2)
})
