import { type Item, isInnerList, parseList } from 'structured-headers'
import { expect, test } from 'vitest'
import type { Decision, LimitState } from './decision.ts'
import type { Limit } from './limit.ts'
import {
  rateLimitPolicy,
  rateLimitState,
  retryAfterSeconds,
  unauthenticatedPolicy,
  unauthenticatedState,
} from './rate-limit-headers.ts'

function limit(given: Partial<Limit>): Limit {
  const span = { kind: 'window', ms: 60_000 } as const
  const by = [{ kind: 'subject' }] as const
  const plain = { applies: 'plan', mode: 'enforce', onUnavailable: 'allow', thresholds: [] } as const
  return { name: 'minute', algorithm: 'fixed_window', size: 100, span, by, ...plain, ...given }
}

function state(given: Partial<LimitState>): LimitState {
  return { name: 'minute', size: 100, used: 13, remaining: 87, resetMs: 40_001, ...given }
}

function decision(given: Partial<Decision>): Decision {
  return { allowed: true, reason: 'ok', deniedBy: '', charged: 'yes', retryAfterMs: 0, limits: [state({})], ...given }
}

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
  [0, 0, 1],
  [1, 1, 1],
  [1_000, 0, 1],
  [1_001, 0, 2],
  [400, 5_001, 6],
])('waiting %i ms with a reset in %i ms is Retry-After %i', (retryAfterMs, resetMs, seconds) => {
  const limits = [state({ remaining: 0, resetMs }), state({ name: 'day', resetMs: 80_000_000 })]
  const denied = decision({ allowed: false, reason: 'limit', deniedBy: 'minute', charged: 'no', retryAfterMs, limits })
  expect(retryAfterSeconds(denied)).toBe(seconds)
})
