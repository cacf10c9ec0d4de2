import { describe, expect, test } from 'vitest'
import type { Limit } from './limit.ts'
import type { LimitRequest } from './limit-store.ts'
import { type CallParts, decodeReply, encodeCall, type Operation } from './script-codec.ts'
import { buildLimit, buildLimitRequest } from './testing/build-limit.ts'

const minute = buildLimit()
const day: Limit = { ...minute, name: 'day', size: 20, capacity: 20, span: { kind: 'period', unit: 'day' } }

const requestOf = (subject: string, overrides: Partial<LimitRequest> = {}): LimitRequest => {
  const scope = { subject, keyId: '', ip: '', route: '', method: '' }
  return buildLimitRequest({ scope, limits: [minute, day], ...overrides })
}

const decide = (subject: string, overrides: Partial<LimitRequest> = {}): Operation => ({
  kind: 'decide',
  request: requestOf(subject, overrides),
})

const parts: CallParts = {
  keyOf: (limit, scope) => `${scope.subject}/${limit.name}`,
  blockKeyOf: (limit, scope) => `${scope.subject}/${limit.name}/blocked`,
  markerKeyOf: ({ subject }, key) => `${subject}/once/${key}`,
  settlementKeyOf: ({ scope }, { id }) => `${scope.subject}/settle/${id}`,
  tallyKeyOf: ({ scope }) => `${scope.subject}/markers`,
  markersMax: 90,
  boundariesOf: (_, { timeZone }) => (timeZone === 'UTC' ? [100, 200, 300] : [150, 250, 350]),
  nowMs: undefined,
}

describe('encodeCall', () => {
  test('sends every key and every limit once, however many requests name them', () => {
    const requests = [decide('a'), decide('b', { cost: 5 }), decide('a', { peek: true })]
    expect(encodeCall(requests, parts)).toEqual({
      keys: ['a/minute', 'a/day', 'b/minute', 'b/day'],
      argv: [
        '',
        '[["fixed_window",0,0,10,60000],["fixed_window",0,0,20,0,100,200,300]]',
        '[[0,1,1,1,2,2],[0,5,1,3,2,4],[1,1,1,1,2,2]]',
      ],
    })
  })

  test('one limit with the boundaries of two zones is two', () => {
    const requests = [decide('a', { limits: [day] }), decide('b', { limits: [day], timeZone: 'Asia/Kathmandu' })]
    const [, limits, body] = encodeCall(requests, parts).argv
    expect(limits).toBe('[["fixed_window",0,0,20,0,100,200,300],["fixed_window",0,0,20,0,150,250,350]]')
    expect(body).toBe('[[0,1,1,1],[0,1,2,2]]')
  })

  test('of blocks that grow each length is sent, of a limit that denies', () => {
    const blockLengths = [5_000, 9_000]
    const growing = { ...minute, blockMs: 9_000, blockLengths }
    const shadow = { ...day, mode: 'shadow', blockMs: 9_000, blockLengths } as const
    const [, limits] = encodeCall([decide('a', { limits: [growing, shadow] })], parts).argv
    expect(limits).toBe('[["fixed_window",0,[5000,9000],10,60000],["fixed_window",1,0,20,0,100,200,300]]')
  })

  test('a block and an idempotency key bring their own keys; a shadow limit has no block', () => {
    const [blocking, shadow] = [{ ...minute, blockMs: 9_000 }, { ...day, mode: 'shadow', blockMs: 9_000 } as const]
    const limits = [blocking, shadow]
    const idempotency = { key: 'k', id: 'id-"1"' }
    const call = encodeCall(
      [decide('a', { limits, idempotency }), decide('a', { limits, idempotency, peek: true })],
      parts,
    )
    expect(call.keys).toEqual(['a/markers', 'a/once/k', 'a/minute', 'a/minute/blocked', 'a/day'])
    expect(call.argv[1]).toBe('[["fixed_window",0,9000,10,60000],["fixed_window",1,0,20,0,100,200,300]]')
    expect(call.argv[2]).toBe('[[3,1,1,90,"id-\\"1\\"",2,1,3,4,2,5],[1,1,1,3,4,2,5]]')
  })

  test('a refund names its time and the limits that were charged, and no block', () => {
    const request = requestOf('a', {
      limits: [
        { ...minute, blockMs: 9_000 },
        { ...day, mode: 'shadow' },
      ],
    })
    const refund = { kind: 'refund', request, charge: { atUs: 77, exceededMask: 2 } } as const
    expect(encodeCall([refund], parts).argv[2]).toBe('[[2,1,77,1,1]]')
  })

  test("a test's time is sent in whole microseconds", () => {
    const { argv } = encodeCall([decide('a')], { ...parts, nowMs: 1_790_000_000_000.25 })
    expect(argv[0]).toBe('1790000000000250')
  })
})

/** As the script packs them. */
function packed(numbers: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(numbers.length * 8))
  for (const [at, number] of numbers.entries()) view.setFloat64(at * 8, number)
  return new Uint8Array(view.buffer)
}

describe('decodeReply', () => {
  const requests = [decide('a'), decide('b', { cost: 15 }), decide('c'), decide('d')]
  const reply = [5_000_000, 1, 1, 0, 0, 1, 9, 50, 1, 19, 70, 3, 1, 0, 0, 10, 50, 0, 20, 70, -3]
  const last = [2, 2, 70, 3, 7, 50, 20, 0, 70]

  test('gives every request its own outcome', () => {
    const { nowUs, rebased, outcomes } = decodeReply(packed([...reply, ...last]), requests)
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
    ['knows a status that this version does not', [...reply, ...last.with(0, 9)]],
    ['refuses without saying which limit did', [...reply, ...last.with(1, 0)]],
    ['is no bytes', 'OK'],
  ])('throws for a reply that %s', (_, wrong) => {
    expect(() => decodeReply(typeof wrong === 'string' ? wrong : packed(wrong), requests)).toThrow(
      /decide\.lua|names no limit/,
    )
  })
})
