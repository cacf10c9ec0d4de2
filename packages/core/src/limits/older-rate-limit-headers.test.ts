import { expect, test } from 'vitest'
import type { Decision } from './decision.ts'
import type { Limit } from './limit.ts'
import { olderRateLimitHeaders } from './older-rate-limit-headers.ts'
import { decision, limit, state } from './testing/build-decision.ts'

const nowMs = 1_700_000_000_500
const minute = limit({})
const day = limit({ name: 'day', size: 5_000, capacity: 5_000, span: { kind: 'period', unit: 'day' } })
const month = limit({ name: 'month', size: 9_000, capacity: 9_000, span: { kind: 'period', unit: 'month' } })

const draft6 = (given: Partial<Decision>, limits: readonly Limit[] | undefined) =>
  Object.fromEntries(olderRateLimitHeaders('draft6', decision(given), limits, nowMs))
const epoch = (given: Partial<Decision>, limits: readonly Limit[] | undefined) =>
  Object.fromEntries(olderRateLimitHeaders('x-ratelimit', decision(given), limits, nowMs))
/** Limit, remaining and reset, which are the same in both but for where the reset is counted from. */
function triple(given: Partial<Decision>, limits: readonly Limit[] | undefined): number[] {
  const told = draft6(given, limits)
  const [size, left, reset] = ['limit', 'remaining', 'reset'].map((word) => Number(told[`ratelimit-${word}`]))
  expect(epoch(given, limits)).toEqual({
    'x-ratelimit-limit': `${size}`,
    'x-ratelimit-remaining': `${left}`,
    'x-ratelimit-reset': `${1_700_000_001 + Number(reset)}`,
  })
  return [Number(size), Number(left), Number(reset)]
}

const refused = (deniedBy: string, retryAfterMs: number) =>
  ({ allowed: false, reason: 'limit', deniedBy, charged: 'no', retryAfterMs }) as const
const unknown = { reason: 'unavailable', charged: 'unknown', limits: [] } as const
const largest = 999_999_999_999_999

test('draft 6 tells one limit in seconds and every limit in its policy, x-ratelimit the same one by the epoch', () => {
  const limits = [state({}), state({ name: 'day', size: 5_000, remaining: 4_000, resetMs: 9_000_000 })]
  expect(draft6({ limits }, [minute, day])).toEqual({
    'ratelimit-limit': '5000',
    'ratelimit-remaining': '4000',
    'ratelimit-reset': '9000',
    'ratelimit-policy': '100;w=60, 5000;w=86400',
  })
  expect(epoch({ limits }, [minute, day])).toEqual({
    'x-ratelimit-limit': '5000',
    'x-ratelimit-remaining': '4000',
    'x-ratelimit-reset': '1700009001',
  })
})

test('the limit that refused is told even if another has less left; of equal ones the one that takes longest', () => {
  const both = [
    state({ remaining: 0, resetMs: 60_000 }),
    state({ name: 'day', size: 5_000, remaining: 3, resetMs: 1_000 }),
  ]
  expect(triple({ ...refused('day', 2_001), limits: both }, [minute, day])).toEqual([5_000, 3, 1])
  const equal = [state({ remaining: 50 }), state({ name: 'day', size: 5_000, remaining: 2_500, resetMs: 80_000_000 })]
  expect(triple({ limits: equal }, [minute, day])).toEqual([5_000, 2_500, 80_000])
})

test('an unauthenticated caller has nothing, until it may try again if it must wait', () => {
  expect(triple({ allowed: false, reason: 'unauthorized', limits: [] }, undefined)).toEqual([0, 0, 0])
  const waiting = { allowed: false, reason: 'unauthorized', retryAfterMs: 1_500, limits: [] } as const
  expect(triple(waiting, undefined)).toEqual([0, 0, 2])
  expect(draft6(waiting, undefined)).not.toHaveProperty('ratelimit-policy')
})

test('without a state, one more is promised to who is let through, and none to who is not', () => {
  expect(triple(unknown, [minute, day])).toEqual([100, 1, 0])
  const denied = { ...unknown, allowed: false, deniedBy: 'day', retryAfterMs: 1_001 } as const
  expect(triple(denied, [minute, day])).toEqual([5_000, 0, 2])
  expect(triple({ ...denied, reason: 'journal_full', deniedBy: '' }, [minute, day])).toEqual([100, 0, 2])
  expect(draft6(unknown, [minute, day])['ratelimit-policy']).toBe('100;w=60, 5000;w=86400')
})

test('without any limit, all there is to have is left, and no policy is told', () => {
  expect(triple({ limits: [] }, [])).toEqual([largest, largest, 0])
  expect(draft6({ limits: [] }, [])).not.toHaveProperty('ratelimit-policy')
  expect(triple({ ...unknown, allowed: false, retryAfterMs: 1_000 }, [])).toEqual([largest, 0, 1])
})

test('a month is told, but has no window in the policy of draft 6, nor have parts of a second', () => {
  const limits = [state({ name: 'month', size: 9_000, remaining: 8, resetMs: 2_000_000_000 })]
  expect(triple({ limits }, [month])).toEqual([9_000, 8, 2_000_000])
  expect(draft6({ limits }, [month])).not.toHaveProperty('ratelimit-policy')
  const half = limit({ name: 'half', size: 7, span: { kind: 'window', ms: 500 } })
  expect(draft6({ limits }, [month, half, day])['ratelimit-policy']).toBe('5000;w=86400')
})

test('answers never mention shadow limits', () => {
  const shadow = limit({ name: 'trial', size: 3, capacity: 3, mode: 'shadow' })
  const trial = state({ name: 'trial', size: 3, remaining: 0, resetMs: 90_000_000 })
  expect(triple({ limits: [trial, state({})] }, [shadow, minute])).toEqual([100, 87, 41])
  expect(draft6({ limits: [trial, state({})] }, [shadow, minute])['ratelimit-policy']).toBe('100;w=60')
  expect(triple({ limits: [trial], shadowedBy: 'trial' }, [shadow])).toEqual([largest, largest, 0])
  expect(triple(unknown, [shadow, day])).toEqual([5_000, 1, 0])
})

test('numbers stay whole and within what clients can read, however large', () => {
  const huge = limit({ size: Number.MAX_SAFE_INTEGER, capacity: Number.MAX_SAFE_INTEGER })
  const limits = [state({ size: Number.MAX_SAFE_INTEGER, remaining: Number.MAX_SAFE_INTEGER, resetMs: 1 })]
  expect(triple({ limits }, [huge])).toEqual([largest, largest, 1])
  expect(draft6({ limits }, [huge])['ratelimit-policy']).toBe(`${largest};w=60`)
})
