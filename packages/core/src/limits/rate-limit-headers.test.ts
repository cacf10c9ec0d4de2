import { type Item, isInnerList, parseList } from 'structured-headers'
import { expect, test } from 'vitest'
import {
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
const day = limit({ name: 'day', size: 5000, span: { kind: 'period', unit: 'day' } })

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

test('without a state, an allowed request holds nobody back and promises no more than one', () => {
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
