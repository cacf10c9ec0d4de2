import { markersName } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { unlimitedDecision } from '@weir/core/limits/limit-store.ts'
import { expect, test } from 'vitest'
import { denialProblem } from './decision-reply.ts'

function problemOf(decision: Partial<typeof unlimitedDecision>, costStatus?: 413, limits: readonly Limit[] = []) {
  const headers = new Map<string, unknown>()
  const reply = { header: (name: string, value: string | number) => headers.set(name, value) }
  const recorded = { id: undefined, decision: { ...unlimitedDecision, allowed: false, ...decision }, limits }
  return { ...denialProblem(reply, recorded, { costStatus }), retryAfter: headers.get('retry-after') }
}

test('too many markers are a problem of their own, which says when to try again', () => {
  const crowded = problemOf({ reason: 'limit', deniedBy: markersName, retryAfterMs: 61_000 })
  expect(crowded).toMatchObject({ type: 'urn:weir:problem:too-many-open', status: 429, retryAfter: 61 })
})

test('A cost that no waiting admits is 403, or 413 where that is configured, without Retry-After', () => {
  const decision = { reason: 'cost_exceeds_limit', deniedBy: 'minute' } as const
  const never = { type: 'urn:weir:problem:cost-exceeds-limit', retryAfter: undefined }
  expect(problemOf(decision)).toMatchObject({ ...never, status: 403 })
  expect(problemOf(decision, 413)).toMatchObject({ ...never, status: 413 })
})

test('What Redis could not decide is 503, and says when to try again', () => {
  const away = problemOf({ reason: 'unavailable', deniedBy: 'minute', retryAfterMs: 200 })
  expect(away).toMatchObject({
    type: expect.stringMatching(/#temporary-reduced-capacity$/),
    status: 503,
    retryAfter: 1,
  })
})

const limit = (unit?: string): Limit => ({
  name: 'month',
  algorithm: 'fixed_window',
  size: 100,
  capacity: 100,
  span: { kind: 'period', unit: 'month' },
  by: [],
  applies: 'plan',
  mode: 'enforce',
  blockMs: 0,
  cooldownMs: 0,
  onExceed: { kind: 'deny' },
  lease: 0,
  onUnavailable: 'deny',
  thresholds: [],
  ...(unit === undefined ? {} : { unit }),
})

test.each([
  ['tokens that are partly held', 'tokens', 'limit', { used: 60, remaining: 10 }, { unit: 'tokens', held: 30 }],
  ['tokens that are all used', 'tokens', 'limit', { used: 100, remaining: 0 }, { unit: 'tokens' }],
  ['tokens beyond a smaller size', 'tokens', 'limit', { used: 130, remaining: 0 }, { unit: 'tokens' }],
  ['tokens, and blocks', 'tokens', 'blocked', { used: 60, remaining: 0 }, { unit: 'tokens' }],
  ['requests', 'requests', 'limit', { used: 100, remaining: 0 }, {}],
  ['costs', undefined, 'limit', { used: 100, remaining: 0 }, {}],
] as const)('A refusal by a limit of %s says its unit and what is held', (_, unit, reason, state, says) => {
  const states = [{ name: 'month', size: 100, resetMs: 1, ...state }]
  const refused = problemOf({ reason, deniedBy: 'month', limits: states }, undefined, [limit(unit)])
  expect(refused.type).toMatch(/#quota-exceeded$/)
  const { unit: shown, held } = refused as { unit?: string; held?: number }
  expect({ ...(shown && { unit: shown }), ...(held !== undefined && { held }) }).toEqual(says)
})
