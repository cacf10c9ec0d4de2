import { type Item, isInnerList, parseList } from 'structured-headers'
import { expect, test } from 'vitest'
import type { Decision } from './decision.ts'
import type { Limit } from './limit.ts'
import {
  olderRateLimitHeaders,
  rateLimitPolicy,
  rateLimitState,
  retryAfterSeconds,
  unauthenticatedPolicy,
  unauthenticatedState,
} from './rate-limit-headers.ts'
import { decision, limit, state } from './testing/build-decision.ts'

/** What a client that follows RFC 9651 reads, or an error. */
function read(field: string): Record<string, unknown>[] {
  return parseList(field).map((member) => {
    if (isInnerList(member)) throw new Error('an inner list')
    const [name, parameters]: Item = member
    return { name, ...Object.fromEntries(parameters) }
  })
}

const minute = limit({})
const day = limit({ name: 'day', size: 5_000, capacity: 5_000, span: { kind: 'period', unit: 'day' } })

test('the fields read as the draft has them: every limit by name, in order', () => {
  expect(rateLimitPolicy([minute, day])).toBe('"minute";q=100;w=60, "day";q=5000;w=86400')
  const limits = [state({}), state({ name: 'day', size: 5000, remaining: 0, resetMs: 0 })]
  expect(rateLimitState(decision({ limits }), [minute, day])).toBe('"minute";r=87;t=41, "day";r=0;t=0')
})

test('clients can read back every name and number, however large', () => {
  const name = `A${'.-_9'.repeat(15)}`
  const huge = limit({ name, size: Number.MAX_SAFE_INTEGER })
  expect(read(rateLimitPolicy([huge, day]))).toEqual([
    { name, q: 999_999_999_999_999, w: 60 },
    { name: 'day', q: 5000, w: 86_400 },
  ])
  const states = [state({ name, remaining: Number.MAX_SAFE_INTEGER, resetMs: Number.MAX_SAFE_INTEGER })]
  expect(read(rateLimitState(decision({ limits: states }), [huge]))).toEqual([
    { name, r: 999_999_999_999_999, t: Math.ceil(Number.MAX_SAFE_INTEGER / 1000) },
  ])
})

test.each([
  [{ kind: 'window', ms: 10_000 }, 10],
  [{ kind: 'window', ms: 1_500 }, undefined],
  [{ kind: 'window', ms: 500 }, undefined],
  [{ kind: 'period', unit: 'minute' }, 60],
  [{ kind: 'period', unit: 'hour' }, 3_600],
  [{ kind: 'period', unit: 'week' }, 604_800],
  [{ kind: 'period', unit: 'month' }, undefined],
] as const)('a span of %j is told as w=%s', (span, seconds) => {
  expect(read(rateLimitPolicy([limit({ span })]))[0]?.w).toBe(seconds)
})

test('the policy field is made once for the limits of a plan', () => {
  const limits = [minute, day]
  expect(rateLimitPolicy(limits)).toBe(rateLimitPolicy(limits))
  expect(rateLimitPolicy([day])).toBe('"day";q=5000;w=86400')
})

test('an unauthenticated caller is told a policy that gives nothing', () => {
  expect(read(unauthenticatedPolicy)).toEqual([{ name: 'unauthenticated', q: 0 }])
  expect(read(unauthenticatedState)).toEqual([{ name: 'unauthenticated', r: 0 }])
})

test('a subject without limits is told that nothing limits it', () => {
  expect(read(rateLimitPolicy([]))).toEqual([{ name: 'unlimited', q: 999_999_999_999_999 }])
  expect(read(rateLimitState(decision({ limits: [] }), []))).toEqual([{ name: 'unlimited', r: 999_999_999_999_999 }])
})

test('without a state, an allowed request promises one more request and no time', () => {
  const unknown = decision({ reason: 'unavailable', charged: 'unknown', limits: [] })
  expect(read(rateLimitState(unknown, [minute, day]))).toEqual([
    { name: 'minute', r: 1 },
    { name: 'day', r: 1 },
  ])
})

test('without a state, a denied request is told to wait as long as Retry-After says', () => {
  const unknown = decision({
    allowed: false,
    reason: 'unavailable',
    charged: 'unknown',
    retryAfterMs: 1_001,
    limits: [],
  })
  expect(retryAfterSeconds(unknown)).toBe(2)
  expect(read(rateLimitState(unknown, [minute]))).toEqual([{ name: 'minute', r: 0, t: 2 }])
  expect(read(rateLimitState({ ...unknown, reason: 'journal_full' }, []))).toEqual([{ name: 'unlimited', r: 0, t: 2 }])
})

test.each([
  [0, 1],
  [1, 1],
  [1_000, 1],
  [1_001, 2],
])('waiting %i ms is Retry-After %i', (retryAfterMs, seconds) => {
  const denied = decision({ allowed: false, reason: 'limit', deniedBy: 'minute', charged: 'no', retryAfterMs })
  expect(retryAfterSeconds(denied)).toBe(seconds)
})

test('a limit that slides says t as Retry-After does, and the others when all of them is free', () => {
  const limits = [state({ remaining: 0, resetMs: 60_000 }), state({ name: 'day', resetMs: 80_000_000 })]
  const refused = { allowed: false, reason: 'limit', deniedBy: 'minute', charged: 'no', retryAfterMs: 1_200 } as const
  expect(read(rateLimitState(decision({ ...refused, limits }), [minute, day]))).toEqual([
    { name: 'minute', r: 0, t: 2 },
    { name: 'day', r: 87, t: 80_000 },
  ])
})

test('a bucket tells its rate as q and w, and may have more than that left; an unused one has t=0', () => {
  const bucket = limit({ algorithm: 'token_bucket', size: 10, capacity: 50, span: { kind: 'window', ms: 1_000 } })
  expect(read(rateLimitPolicy([bucket]))).toEqual([{ name: 'minute', q: 10, w: 1 }])
  const limits = [state({ size: 50, used: 0, remaining: 50, resetMs: 0 })]
  expect(read(rateLimitState(decision({ limits }), [bucket]))).toEqual([{ name: 'minute', r: 50, t: 0 }])
})

test('answers never mention shadow limits', () => {
  const shadow = limit({ name: 'trial', mode: 'shadow' })
  expect(rateLimitPolicy([shadow, day])).toBe('"day";q=5000;w=86400')
  const limits = [state({ name: 'trial' }), state({ name: 'day', resetMs: 9_000 })]
  expect(rateLimitState(decision({ limits }), [shadow, day])).toBe('"day";r=87;t=9')
  expect(rateLimitPolicy([shadow])).toBe(rateLimitPolicy([]))
  expect(rateLimitState(decision({ limits: [state({ name: 'trial' })] }), [shadow])).toBe(
    rateLimitState(decision({ limits: [] }), []),
  )
  const unknown = decision({ reason: 'unavailable', limits: [] })
  expect(rateLimitState(unknown, [shadow, day])).toBe('"day";r=1')
  const partly = decision({ reason: 'unavailable', limits: [state({ name: 'day', resetMs: 9_000 })] })
  expect(rateLimitState(partly, [shadow, day])).toBe('"day";r=87;t=9')
})

const nowMs = 1_700_000_000_500
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

test('without a state, the older dialects promise one more request to an allowed caller, and none to a denied one', () => {
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

test('older dialects never mention shadow limits', () => {
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
