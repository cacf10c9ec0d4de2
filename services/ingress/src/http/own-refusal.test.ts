import { denied } from '@weir/core/limits/decision.ts'
import { expect, it } from 'vitest'
import { ownBodyOf, ownRefusalOf } from './own-refusal.ts'

const refusal = { contentType: 'text/plain', body: '{{limit}} {{reason}} {{retry_after}} "{{decision}}"' }

it("answers what a limit refused, and nothing else, in the route's own words", () => {
  const recorded = (reason: Parameters<typeof denied>[0], deniedBy = 'minute') => ({
    id: undefined,
    decision: { ...denied(reason, { retryAfterMs: 1_500 }), deniedBy },
    limits: [],
  })
  const says = (one: ReturnType<typeof recorded>) => ownBodyOf(one, ownRefusalOf(one, refusal))?.bytes.toString()
  expect(says(recorded('limit'))).toBe('minute limit 2 ""')
  expect(says(recorded('blocked'))).toBe('minute blocked 2 ""')
  for (const reason of ['unauthorized', 'unavailable', 'journal_full', 'cost_exceeds_limit'] as const) {
    expect(says(recorded(reason))).toBeUndefined()
  }
  // Too many markers is no limit of the policy.
  expect(says(recorded('limit', '_markers'))).toBeUndefined()
  expect(ownBodyOf(recorded('limit'), { contentType: 'application/json', dialect: 'none' })).toBeUndefined()
})
