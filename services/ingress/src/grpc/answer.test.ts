import { systemClock } from '@weir/core/clock.ts'
import { decision, limit } from '@weir/core/limits/testing/build-decision.ts'
import { expect, test } from 'vitest'
import { answerOf } from './answer.ts'
import { codes } from './messages.ts'

test('what could not be recorded is over its limit, with the problem and without an id: Envoy would serve an error', () => {
  const unrecorded = decision({
    allowed: false,
    reason: 'journal_full',
    charged: 'no',
    retryAfterMs: 5_000,
    limits: [],
  })
  for (const limits of [[limit({})], undefined]) {
    const answer = answerOf({ id: undefined, decision: unrecorded, limits }, 2, undefined, { clock: systemClock })
    expect([answer.overallCode, ...answer.statuses.map(({ code }) => code)]).toEqual(
      [1, 2, 3].map(() => codes.overLimit),
    )
    const names = answer.responseHeadersToAdd.map(({ key }) => key)
    expect([names.includes('weir-decision'), names.includes('retry-after')]).toEqual([false, true])
    expect(JSON.parse(String(answer.rawBody))).toMatchObject({ status: 503 })
  }
})
