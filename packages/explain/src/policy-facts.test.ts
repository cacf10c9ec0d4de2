import { expect, it } from 'vitest'
import { explainDecision } from './explain-decision.ts'
import { factsOf, policyOf } from './policy-facts.ts'
import type { RecordedDecision } from './recorded-decision.ts'

const entity = (kind: string, name: string, body: object) => ({ kind, name, body: JSON.stringify(body) })
const month = { algorithm: 'fixed_window', period: 'month' }
const policy = policyOf({
  entities: [
    entity('limit', 'team-month', { ...month, size: 100 }),
    entity('limit', 'member-month', { ...month, size: 50 }),
    entity('plan', 'team', { limits: ['team-month'] }),
    entity('plan', 'member', { limits: ['member-month'] }),
    entity('plan', 'gold', { limits: [] }),
    entity('subject', 'ann', { plan: 'member' }),
    entity('subject', 'red', { plan: 'team', limits: { 'team-month': { size: 250 } } }),
  ],
})

it('no other plan of a member helps where a limit above refuses, which is explained by its ancestor', () => {
  if (policy === undefined) throw new Error('the policy is wrong')
  const limit = (name: string, size: number, used: number, at: string) => {
    return { name, size, used, remaining: size - used, reset_ms: 5_000, by: {}, at }
  }
  const limits = [limit('member-month', 50, 3, ''), limit('team-month', 250, 250, 'red')]
  const decision: RecordedDecision = {
    ts_ms: Date.now(),
    plan: 'member',
    cost: 1,
    count: 1,
    outcome: 'deny',
    reason: 'limit',
    mode: 'enforce',
    charged: 'no',
    denied_by: 'team-month',
    shadowed_by: '',
    retry_ms: 5_000,
    correction: undefined,
    held: {},
    units: {},
    limits,
  }
  const row = { subject: 'ann', plan: 'member', route: '*', parents: ['red'], limits }
  const explained = explainDecision(decision, factsOf(policy, row))
  expect(explained.would_have_allowed.map(({ how }) => how)).not.toContain('plan')
  expect(explained.limits.map(({ because }) => because)).toEqual([
    ['plan member'],
    ['plan team of red', "red's own size instead of 100"],
  ])
})
