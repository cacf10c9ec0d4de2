import { markersName } from '@weir/core/limits/exceeding.ts'
import { unlimitedDecision } from '@weir/core/limits/limit-store.ts'
import { expect, test } from 'vitest'
import { denialProblem } from './decision-reply.ts'

function problemOf(decision: Partial<typeof unlimitedDecision>, costStatus?: 413) {
  const headers = new Map<string, unknown>()
  const reply = { header: (name: string, value: string | number) => headers.set(name, value) }
  const recorded = { id: undefined, decision: { ...unlimitedDecision, allowed: false, ...decision }, limits: [] }
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
