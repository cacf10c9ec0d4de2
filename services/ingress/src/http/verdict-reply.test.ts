import { unlimitedDecision } from '@weir/core/limits/check-limit-request.ts'
import { markersName } from '@weir/core/limits/exceeding.ts'
import { expect, test } from 'vitest'
import { denialProblem } from './verdict-reply.ts'

function problemOf(decision: Partial<typeof unlimitedDecision>) {
  const headers = new Map<string, unknown>()
  const reply = { header: (name: string, value: string | number) => headers.set(name, value) }
  const refused = { ...unlimitedDecision, allowed: false, ...decision }
  return {
    ...denialProblem(reply, { id: undefined, decision: refused, limits: [] }),
    retryAfter: headers.get('retry-after'),
  }
}

test('too many markers are a problem of their own, which says when there is room', () => {
  const crowded = problemOf({ reason: 'limit', deniedBy: markersName, retryAfterMs: 61_000 })
  expect(crowded).toMatchObject({ type: 'urn:weir:problem:too-many-open', status: 429, retryAfter: 61 })
})
