import type { Limit, Span } from '@weir/core/limits/limit.ts'
import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { expect, it } from 'vitest'
import { explainDecision } from './explain-decision.ts'
import type { PolicyFacts, RecordedDecision } from './recorded-decision.ts'

const limitOf = (span: Span, more: Partial<Limit> = {}) => buildLimit({ name: 'l', span, ...more })
const midnightMs = Date.parse('2026-11-22T18:15:00Z')
const allowed: RecordedDecision = {
  ts_ms: midnightMs - 90_000,
  plan: 'free',
  cost: 1,
  count: 1,
  outcome: 'allow',
  reason: 'ok',
  mode: 'enforce',
  charged: 'yes',
  denied_by: '',
  shadowed_by: '',
  retry_ms: undefined,
  correction: undefined,
  held: {},
  units: {},
  limits: [],
}
function resetAt(limit: Limit, endMs: number, remaining = 5): string | undefined {
  const decision: RecordedDecision = {
    ...allowed,
    limits: [
      { name: 'l', size: 10, used: 10 - remaining, remaining, reset_ms: endMs - midnightMs + 90_000, by: {}, at: '' },
    ],
  }
  const facts: PolicyFacts = { limits: [{ limit, because: ['plan free'] }], plans: [] }
  return explainDecision(decision, facts).limits[0]?.reset_at
}
const day = limitOf({ kind: 'period', unit: 'day' })
const at = '2026-11-22T18:15:00.000Z'

it('a window or a period ends at its boundary, though the clocks of its record differ', () => {
  for (const skewMs of [-1_000, -1, 0, 1, 1_000]) expect(resetAt(day, midnightMs + skewMs)).toBe(at)
  expect(resetAt(limitOf({ kind: 'window', ms: 60_000 }), midnightMs + 1)).toBe(at)
  expect(resetAt(limitOf({ kind: 'window', ms: 100 }), midnightMs + 1)).toBe(at)
})

it('what ends elsewhere ends as it was recorded: a block, a sliding window, a clock that is far off', () => {
  const next = '2026-11-22T18:15:00.001Z'
  expect(resetAt(limitOf({ kind: 'window', ms: 60_000 }, { algorithm: 'sliding_log' }), midnightMs + 1)).toBe(next)
  expect(resetAt(limitOf({ kind: 'window', ms: 60_000 }, { blockMs: 90_000 }), midnightMs + 1, 0)).toBe(next)
  expect(resetAt(day, midnightMs + 1_001)).toBe('2026-11-22T18:15:01.001Z')
})

it('a refusal by no limit says whether the subject was suspended, and why, as far as the policy of then is known', () => {
  const refused: RecordedDecision = { ...allowed, outcome: 'deny', reason: 'blocked', charged: 'no', retry_ms: -1 }
  const summaryWith = (facts: PolicyFacts | undefined) => explainDecision(refused, facts).summary
  const facts: PolicyFacts = { limits: [], plans: [] }
  expect(summaryWith({ ...facts, suspended: 'invoice unpaid' })).toContain('was suspended (invoice unpaid)')
  expect(summaryWith(facts)).toContain('was blocked by hand.')
  expect(summaryWith(undefined)).toContain('was blocked by hand or suspended')
})

it('a refusal by what others hold says so, in the unit of the limit, and promises no wait', () => {
  const tokens = limitOf({ kind: 'period', unit: 'month' }, { unit: 'tokens', size: 1_000, capacity: 1_000 })
  const refused: RecordedDecision = {
    ...allowed,
    outcome: 'deny',
    reason: 'limit',
    denied_by: 'l',
    retry_ms: 2_000,
    units: { tokens: 700 },
    limits: [{ name: 'l', size: 1_000, used: 100, remaining: 600, reset_ms: 90_000, by: {}, at: '' }],
  }
  const facts: PolicyFacts = { limits: [{ limit: tokens, because: ['plan free'] }], plans: [] }
  const { summary, would_have_allowed: remedies } = explainDecision(refused, facts)
  expect(summary).toContain('Refused by l: 400 of 1,000 tokens were used, 300 of them only held')
  expect(summary).toContain('costs 700')
  expect(remedies).toEqual([{ how: 'size', limit: 'l', at_least: 1_100 }])
})
