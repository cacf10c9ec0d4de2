import { describe, expect, test } from 'vitest'
import type { Limit } from './limit.ts'
import type { LimitRequest } from './limit-store.ts'
import { type CallParts, decodeReply, encodeCall } from './script-codec.ts'

const minute: Limit = {
  name: 'minute',
  algorithm: 'fixed_window',
  size: 10,
  span: { kind: 'window', ms: 60_000 },
  by: [{ kind: 'subject' }],
  applies: 'plan',
  mode: 'enforce',
  onUnavailable: 'allow',
  thresholds: [],
}
const day: Limit = { ...minute, name: 'day', size: 20, span: { kind: 'period', unit: 'day' } }

const requestOf = (subject: string, overrides: Partial<LimitRequest> = {}): LimitRequest => ({
  scope: { subject, keyId: '', ip: '', route: '', method: '' },
  cost: 1,
  peek: false,
  limits: [minute, day],
  timeZone: 'UTC',
  anchor: 1,
  ...overrides,
})

const parts: CallParts = {
  keyOf: (limit, scope) => `${scope.subject}/${limit.name}`,
  boundariesOf: (_, { timeZone }) => (timeZone === 'UTC' ? [100, 200, 300] : [150, 250, 350]),
  nowMs: undefined,
}

describe('encodeCall', () => {
  test('sends every key and every limit once, however many requests name them', () => {
    const requests = [requestOf('a'), requestOf('b', { cost: 5 }), requestOf('a', { peek: true })]
    expect(encodeCall(requests, parts)).toEqual({
      keys: ['a/minute', 'a/day', 'b/minute', 'b/day'],
      argv: [
        '',
        '[["fixed_window",0,10,60000],["fixed_window",0,20,0,100,200,300]]',
        '[[0,1,1,1,2,2],[0,5,1,3,2,4],[1,1,1,1,2,2]]',
      ],
    })
  })

  test('one limit with the boundaries of two zones is two', () => {
    const requests = [requestOf('a', { limits: [day] }), requestOf('b', { limits: [day], timeZone: 'Asia/Kathmandu' })]
    const [, limits, body] = encodeCall(requests, parts).argv
    expect(limits).toBe('[["fixed_window",0,20,0,100,200,300],["fixed_window",0,20,0,150,250,350]]')
    expect(body).toBe('[[0,1,1,1],[0,1,2,2]]')
  })

  test("a test's time is sent in whole microseconds", () => {
    const { argv } = encodeCall([requestOf('a')], { ...parts, nowMs: 1_790_000_000_000.25 })
    expect(argv[0]).toBe('1790000000000250')
  })
})

describe('decodeReply', () => {
  const requests = [requestOf('a'), requestOf('b', { cost: 15 }), requestOf('c'), requestOf('d')]
  const reply = [5_000_000, 1, 1, 0, 0, 1, 9, 50, 1, 19, 70, 3, 1, 0, 0, 10, 50, 0, 20, 70, -3]
  const last = [2, 2, 70, 3, 7, 50, 20, 0, 70]

  test('gives every request its own outcome', () => {
    const { nowUs, rebased, outcomes } = decodeReply([...reply, ...last], requests)
    expect({ nowUs, rebased }).toEqual({ nowUs: 5_000_000, rebased: 1 })
    expect(outcomes).toMatchObject([
      { allowed: true, reason: 'ok', deniedBy: '', charged: 'yes', retryAfterMs: 0 },
      { allowed: false, reason: 'cost_exceeds_limit', deniedBy: 'minute', charged: 'no', retryAfterMs: 0 },
      { malformed: 'limit' },
      { allowed: false, reason: 'limit', deniedBy: 'day', charged: 'no', retryAfterMs: 70 },
    ])
    expect(outcomes[0]).toMatchObject({
      limits: [
        { name: 'minute', size: 10, used: 1, remaining: 9, resetMs: 50 },
        { name: 'day', size: 20, used: 1, remaining: 19, resetMs: 70 },
      ],
    })
  })

  test.each([
    ['is too short', [...reply, ...last.slice(1)]],
    ['is too long', [...reply, ...last, 0]],
    ['holds text', [...reply, ...last.with(3, Number.NaN)].map((value) => (Number.isNaN(value) ? '3' : value))],
    ['knows a verdict that this version does not', [...reply, ...last.with(0, 9)]],
    ['refuses without saying which limit did', [...reply, ...last.with(1, 0)]],
    ['is no list', 'OK'],
  ])('throws for a reply that %s', (_, wrong) => {
    expect(() => decodeReply(wrong, requests)).toThrow(/decide\.lua|names no limit/)
  })
})
