import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { Outcome } from '@weir/core/limits/script-codec.ts'
import { malformed, statuses } from '@weir/core/limits/script-protocol.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { readScript } from '@weir/redis/scripts.ts'
import { describe, expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine, type DecideEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const startMs = 1_790_000_000_000 - (1_790_000_000_000 % hourMs)

const wide = buildLimit({ name: 'wide', size: 100 })
const shadow = buildLimit({ name: 'shadow', size: 2, mode: 'shadow' })
const codes = buildLimit({ name: 'codes', size: 3, blockMs: hourMs })

async function one(engine: DecideEngine, request: LimitRequest, nowMs: number): Promise<Outcome | undefined> {
  const { outcomes } = await engine.decide({ requests: [request], nowMs })
  return outcomes[0]
}

describe.each([
  ['model', async () => createModelEngine()],
  ['redis', async () => createRedisEngine(await openLimiterRedis(inject('redisUrl')))],
])('in %s', (_, open) => {
  test('a shadow limit refuses nobody, says whom it would have refused, and counts what it would have admitted', async () => {
    const engine = await open()
    const requests = Array.from({ length: 4 }, () => buildLimitRequest({ limits: [wide, shadow] }))
    const { outcomes } = await engine.decide({ requests, nowMs: startMs })
    expect(outcomes).toMatchObject([
      { allowed: true, shadowedBy: '', exceededMask: 0, limits: [{ used: 1 }, { used: 1 }] },
      { allowed: true, shadowedBy: '', exceededMask: 0, limits: [{ used: 2 }, { used: 2 }] },
      { allowed: true, reason: 'ok', charged: 'yes', shadowedBy: 'shadow', limits: [{ used: 3 }, { used: 2 }] },
      { allowed: true, deniedBy: '', exceededMask: 2, shadowedBy: 'shadow', limits: [{ used: 4 }, { used: 2 }] },
    ])
  })

  test('what a shadow limit would have refused is not taken from it by a refund', async () => {
    const engine = await open()
    const request = buildLimitRequest({ limits: [wide, shadow] })
    await engine.decide({ requests: [request, request, request], nowMs: startMs })
    const refund = { kind: 'refund', request, charge: { atUs: startMs * 1_000, exceededMask: 2 } } as const
    const { outcomes } = await engine.run({ operations: [refund], nowMs: startMs + 1 })
    expect(outcomes).toEqual([{ refundedAtUs: (startMs + 1) * 1_000 }])
    const peek = await one(engine, { ...request, peek: true }, startMs + 2)
    expect(peek).toMatchObject({ limits: [{ used: 2 }, { used: 2 }] })
  })

  test('a shadow limit with a unit counts beyond its size, and a peek beside a charge changes nothing of it', async () => {
    const engine = await open()
    const units = new Map([['tokens', 40]])
    const tokens = buildLimit({ name: 'tokens', size: 50, mode: 'shadow', unit: 'tokens' })
    const request = buildLimitRequest({ limits: [wide, tokens], units })
    const { outcomes } = await engine.decide({ requests: [request, request, request], nowMs: startMs })
    const counts = [40, 80, 120].map((used, at) => ({ allowed: true, limits: [{ used: at + 1 }, { used }] }))
    expect(outcomes).toMatchObject(counts)
    const override = { named: new Map(), cost: 0, isPeek: true } as const
    const peeking = { ...request, hasOverrides: true, limits: [wide, { ...tokens, override }] }
    const peeked = await engine.decide({ requests: [peeking, peeking], nowMs: startMs + 1 })
    expect(peeked.outcomes).toMatchObject([4, 5].map((used) => ({ limits: [{ used }, { used: 120 }] })))
  })

  test('a subject that exceeds a limit with a block is blocked for exactly that long, and trying does not make it longer', async () => {
    const engine = await open()
    const request = buildLimitRequest({ limits: [wide, codes] })
    const { outcomes } = await engine.decide({
      requests: [request, request, request, request, request],
      nowMs: startMs,
    })
    expect(outcomes[3]).toMatchObject({ allowed: false, reason: 'limit', deniedBy: 'codes', retryAfterMs: hourMs })
    expect(outcomes[4]).toMatchObject({ allowed: false, reason: 'blocked', deniedBy: 'codes', retryAfterMs: hourMs })
    expect(outcomes[4]).toMatchObject({ limits: [{ used: 3 }, { used: 3, remaining: 0, resetMs: hourMs }] })
    const nextMinute = await one(engine, request, startMs + 2 * minuteMs)
    expect(nextMinute).toMatchObject({ reason: 'blocked', retryAfterMs: hourMs - 2 * minuteMs })
    expect(await one(engine, request, startMs + hourMs - 1)).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
    expect(await one(engine, request, startMs + hourMs)).toMatchObject({ allowed: true, reason: 'ok' })
  })

  test('blocks grow with every breach in a row, and begin again once none came for as long as the longest of them', async () => {
    const engine = await open()
    const lengths = [2 * minuteMs, hourMs, 24 * hourMs]
    const request = buildLimitRequest({ limits: [wide, { ...codes, blockMs: 24 * hourMs, blockLengths: lengths }] })
    let nowMs = startMs
    /** Exceeds the limit in one window, tries in vain to the end of its block, and says how long that was. */
    const breach = async () => {
      const { outcomes } = await engine.decide({ requests: [request, request, request, request, request], nowMs })
      const [, , , first] = outcomes
      const ms = first !== undefined && 'retryAfterMs' in first ? first.retryAfterMs : 0
      expect(outcomes.slice(2)).toMatchObject([
        { allowed: true },
        { reason: 'limit', retryAfterMs: ms },
        { reason: 'blocked', retryAfterMs: ms },
      ])
      const last = await one(engine, request, nowMs + ms - 1)
      expect(last).toMatchObject({ reason: 'blocked', retryAfterMs: 1, limits: [{}, { remaining: 0 }] })
      nowMs += ms
      return ms
    }
    expect([await breach(), await breach(), await breach(), await breach()]).toEqual([...lengths, 24 * hourMs])
    // A millisecond before it is forgotten, and when it is.
    nowMs += 24 * hourMs - 1
    expect(await breach()).toBe(24 * hourMs)
    nowMs += 24 * hourMs
    expect([await breach(), await breach()]).toEqual([2 * minuteMs, hourMs])
  })

  test('of several limits that block, each grows by its own breaches, and the longest is waited for', async () => {
    const engine = await open()
    const growing = { ...codes, blockMs: hourMs, blockLengths: [minuteMs, hourMs] }
    const fixed = buildLimit({ name: 'fixed', size: 3, blockMs: 5 * minuteMs })
    const [alone, both] = [[growing], [growing, fixed]].map((limits) => buildLimitRequest({ limits, cost: 3 }))
    if (alone === undefined || both === undefined) throw new Error('no requests')
    const first = await engine.decide({ requests: [alone, alone], nowMs: startMs })
    expect(first.outcomes[1]).toMatchObject({ reason: 'limit', retryAfterMs: minuteMs })
    const next = await engine.decide({ requests: [both, both], nowMs: startMs + minuteMs })
    expect(next.outcomes).toMatchObject([{ allowed: true }, { reason: 'limit', retryAfterMs: hourMs }])
    const later = await one(engine, buildLimitRequest({ limits: [fixed] }), startMs + 5 * minuteMs)
    expect(later).toMatchObject({ reason: 'blocked', retryAfterMs: minuteMs })
  })

  test('a look, a cost that never fits and a refusal by another limit block nobody', async () => {
    const engine = await open()
    const narrow = buildLimit({ name: 'narrow', size: 1 })
    const fill = buildLimitRequest({ limits: [codes], cost: 3 })
    await engine.decide({ requests: [fill, { ...fill, cost: 4 }, { ...fill, cost: 1, peek: true }], nowMs: startMs })
    const both = buildLimitRequest({ limits: [narrow, { ...codes, name: 'other' }] })
    await engine.decide({ requests: [both, both], nowMs: startMs })
    expect(await one(engine, fill, startMs + minuteMs)).toMatchObject({ allowed: true })
    expect(await one(engine, both, startMs + minuteMs)).toMatchObject({ allowed: true })
  })

  test('a block stays when what led to it is given back', async () => {
    const engine = await open()
    const request = buildLimitRequest({ limits: [codes] })
    await engine.decide({ requests: [request, request, request, request], nowMs: startMs })
    const refund = { kind: 'refund', request, charge: { atUs: startMs * 1_000, exceededMask: 0 } } as const
    expect((await engine.run({ operations: [refund], nowMs: startMs + 1 })).outcomes).toEqual([
      { refundedAtUs: (startMs + 1) * 1_000 },
    ])
    expect(await one(engine, request, startMs + 2)).toMatchObject({ reason: 'blocked', limits: [{ used: 2 }] })
  })

  test('the same idempotency key gets the first answer again and is charged once, for ten minutes', async () => {
    const engine = await open()
    const attempt = (id: string) => buildLimitRequest({ limits: [wide, codes], idempotency: { key: 'order 7', id } })
    const first = await one(engine, attempt('id-1'), startMs)
    await one(engine, buildLimitRequest({ limits: [wide] }), startMs + 1)
    const again = await engine.decide({ requests: [attempt('id-2'), attempt('id-3')], nowMs: startMs + 2 })
    for (const outcome of again.outcomes) {
      expect(outcome).toEqual({ ...first, charged: 'no', repeats: 'id-1', atUs: (startMs + 2) * 1_000 })
    }
    const fresh = await one(engine, attempt('id-4'), startMs + 10 * minuteMs)
    expect(fresh).toMatchObject({ charged: 'yes', repeats: '' })
  })

  test('an idempotency key with a fingerprint repeats what asks the same, and names the first to what asks another', async () => {
    const engine = await open()
    const attempt = (id: string, fingerprint?: string) =>
      buildLimitRequest({
        limits: [wide, codes],
        idempotency: { key: 'print', id, ...(fingerprint && { fingerprint }) },
      })
    const { outcomes } = await engine.decide({
      requests: [attempt('id-1', 'abcdefghijkl'), attempt('id-2', 'abcdefghijkl'), attempt('id-3', 'ABCDEFGHIJKL')],
      nowMs: startMs,
    })
    const [first] = outcomes
    const repeat = { ...first, charged: 'no', repeats: 'id-1' }
    expect(first).toMatchObject({ charged: 'yes', limits: [{ used: 1 }, { used: 1 }] })
    expect(outcomes.slice(1)).toEqual([repeat, { ...repeat, isOtherQuestion: true }])
    expect(await one(engine, attempt('id-4'), startMs)).toEqual(repeat)
  })

  test('a marker of a version before, without a fingerprint, repeats whatever is asked', async () => {
    const engine = await open()
    const attempt = { key: 'before', id: 'id-1' }
    await one(engine, buildLimitRequest({ limits: [wide], idempotency: attempt }), startMs)
    const print = buildLimitRequest({ limits: [wide], idempotency: { ...attempt, fingerprint: 'abcdefghijkl' } })
    const again = await one(engine, print, startMs)
    expect(again).toMatchObject({ charged: 'no', repeats: 'id-1' })
    expect(again).not.toHaveProperty('isOtherQuestion')
  })

  test('two requests with one idempotency key in one call are charged once', async () => {
    const engine = await open()
    const attempt = (id: string) => buildLimitRequest({ limits: [wide], idempotency: { key: 'twin', id } })
    const { outcomes } = await engine.decide({ requests: [attempt('a'), attempt('b')], nowMs: startMs })
    expect(outcomes).toMatchObject([
      { charged: 'yes', repeats: '', limits: [{ used: 1 }] },
      { charged: 'no', repeats: 'a', limits: [{ used: 1 }] },
    ])
  })

  test('a refusal leaves no marker: the same key may be admitted later', async () => {
    const engine = await open()
    const narrow = buildLimit({ name: 'narrow', size: 1 })
    const attempt = buildLimitRequest({ limits: [narrow], idempotency: { key: 'later', id: 'x' } })
    await one(engine, buildLimitRequest({ limits: [narrow] }), startMs)
    expect(await one(engine, attempt, startMs)).toMatchObject({ allowed: false })
    expect(await one(engine, attempt, startMs + minuteMs)).toMatchObject({ allowed: true, repeats: '' })
  })

  test('a limit that degrades lets pass what it has no room for, uncounted, and names itself beside a shadow limit', async () => {
    const engine = await open()
    const soft = buildLimit({ name: 'soft', size: 1, onExceed: { kind: 'degrade' } })
    const softer = buildLimit({ name: 'softer', size: 2, onExceed: { kind: 'degrade' } })
    const request = buildLimitRequest({ limits: [shadow, wide, soft, softer] })
    const { outcomes } = await engine.decide({ requests: [request, request, request], nowMs: startMs })
    expect(outcomes).toMatchObject([
      { allowed: true, reason: 'ok', deniedBy: '', exceededMask: 0 },
      { allowed: true, reason: 'limit', deniedBy: 'soft', exceededMask: 4, shadowedBy: '', retryAfterMs: 0 },
      { allowed: true, reason: 'limit', deniedBy: 'soft', exceededMask: 13, shadowedBy: 'shadow', charged: 'yes' },
    ])
    expect(outcomes[2]).toMatchObject({ limits: [{ used: 2 }, { used: 3 }, { used: 1, remaining: 0 }, { used: 2 }] })
  })

  test('what a limit that degrades did not count is not given back to it', async () => {
    const engine = await open()
    const soft = buildLimit({ name: 'soft', size: 1, onExceed: { kind: 'degrade' } })
    const request = buildLimitRequest({ limits: [wide, soft] })
    await engine.decide({ requests: [request, request], nowMs: startMs })
    const charge = { atUs: startMs * 1_000, exceededMask: 2 }
    await engine.run({ operations: [{ kind: 'refund', request, charge }], nowMs: startMs })
    expect(await one(engine, { ...request, peek: true }, startMs)).toMatchObject({ limits: [{ used: 1 }, { used: 1 }] })
  })

  test('beside a limit that refuses, one that degrades refuses nothing and is not named', async () => {
    const engine = await open()
    const soft = buildLimit({ name: 'soft', size: 1, onExceed: { kind: 'degrade' } })
    const hard = buildLimit({ name: 'hard', size: 1 })
    const request = buildLimitRequest({ limits: [soft, hard] })
    const { outcomes } = await engine.decide({ requests: [request, request], nowMs: startMs })
    expect(outcomes[1]).toMatchObject({ allowed: false, reason: 'limit', deniedBy: 'hard', exceededMask: 3 })
  })

  test('a limit that delays refuses while it is paused, whatever room it has, and a refusal of its own sets no pause', async () => {
    const engine = await open()
    const slow = buildLimit({ name: 'slow', size: 2, onExceed: { kind: 'delay', delayMs: 1_000, queueMax: 10 } })
    const request = buildLimitRequest({ limits: [wide, slow] })
    const { outcomes } = await engine.decide({ requests: [request, request, request], nowMs: startMs })
    expect(outcomes[2]).toMatchObject({ reason: 'limit', deniedBy: 'slow', retryAfterMs: minuteMs })
    expect(await one(engine, request, startMs + minuteMs)).toMatchObject({ reason: 'ok' })
    const { scope } = request
    const nowMs = startMs + minuteMs
    expect(await engine.pause({ limit: slow, scope, pauseMs: hourMs, nowMs })).toBe(hourMs)
    expect(await one(engine, request, nowMs + 1)).toMatchObject({
      allowed: false,
      reason: 'blocked',
      deniedBy: 'slow',
      retryAfterMs: hourMs - 1,
      limits: [{ used: 1 }, { used: 1, remaining: 0, resetMs: hourMs - 1 }],
    })
    expect(await one(engine, request, nowMs + hourMs)).toMatchObject({ reason: 'ok' })
  })

  test('a pause is only ever lengthened, and stands at most 31 days', async () => {
    const engine = await open()
    const slow = buildLimit({ name: 'slow', onExceed: { kind: 'delay', delayMs: 1_000, queueMax: 10 } })
    const { scope } = buildLimitRequest()
    const pause = (pauseMs: number, nowMs: number) => engine.pause({ limit: slow, scope, pauseMs, nowMs })
    expect(await pause(30_000, startMs)).toBe(30_000)
    expect(await pause(10_000, startMs + 1_000)).toBe(29_000)
    expect(await pause(31 * 24 * hourMs, startMs)).toBe(31 * 24 * hourMs)
    if (engine.name === 'redis') await expect(pause(31 * 24 * hourMs + 1, startMs)).rejects.toThrow('PAUSEARGS')
  })
})

test('blocks and markers are keys of their own, with an expiry', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const engine = createRedisEngine(redis)
  const request = buildLimitRequest({ limits: [codes], cost: 3, idempotency: { key: 'k', id: 'id' } })
  await engine.decide({ requests: [request, { ...request, idempotency: undefined }], nowMs: startMs })
  const keys = (await engine.keys()).sort()
  expect(keys).toEqual([
    expect.stringMatching(/\{acme\}:_markers$/),
    expect.stringMatching(/\{acme\}:_once:[\w-]{43}$/),
    expect.stringMatching(/:codes$/),
    expect.stringMatching(/:codes:blocked$/),
  ])
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0)
})

test('a block that grows is kept until it is forgotten, and one that does not until its end', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const engine = createRedisEngine(redis)
  const growing = { ...codes, name: 'growing', blockMs: hourMs, blockLengths: [minuteMs, hourMs] }
  const request = buildLimitRequest({ limits: [growing, codes], cost: 3 })
  const nowMs = Date.now()
  await engine.decide({ requests: [request, request], nowMs })
  const keys = (await engine.keys()).filter((key) => key.endsWith(':blocked')).sort()
  const [fixedMs = 0, growingMs = 0] = await Promise.all(keys.map((key) => redis.pttl(key)))
  const stepBackMs = 2_000
  const secondsOfTest = 60_000
  expect(fixedMs).toBeLessThanOrEqual(hourMs + stepBackMs)
  expect(growingMs).toBeLessThanOrEqual(minuteMs + hourMs + stepBackMs)
  expect(growingMs).toBeGreaterThan(minuteMs + hourMs + stepBackMs - secondsOfTest)
})

test.each([
  ['none', '[]'],
  ['nine', '[1,2,3,4,5,6,7,8,9]'],
  ['two of one length', '[5,5]'],
  ['a shorter one behind a longer', '[5,4]'],
  ['no numbers', '["5"]'],
  ['zero', '[0,5]'],
  ['a list in a list', '[[5]]'],
  ['an object', '{"1":5}'],
])('a limit with %s for the lengths of its blocks is malformed, and its request alone fails', async (_, lengths) => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const definitions = `[["fixed_window",0,${lengths},10,60000],["fixed_window",0,[4,5],10,60000],["fixed_window",1,[4,5],10,60000]]`
  const keys = ['{lengths}:a', '{lengths}:b', '{lengths}:c'].map((key) => `${_}:${key}`)
  const requests = '[[1,1,1,1,2],[1,1,2,1,2],[1,1,3,1,2]]'
  const { source } = readScript('decide')
  const reply = await redis.callBuffer('eval', source, 3, ...keys, '', definitions, requests)
  if (!Buffer.isBuffer(reply)) throw new Error('no reply')
  const [wrong, right, passing] = [reply.readDoubleBE(16), reply.readDoubleBE(24), reply.readDoubleBE(24 + 6 * 8)]
  expect([wrong, right, passing]).toEqual([malformed.LIMIT, statuses.ALLOWED, malformed.LIMIT])
})
