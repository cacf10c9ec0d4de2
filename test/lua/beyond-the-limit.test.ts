import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { Outcome } from '@weir/core/limits/script-codec.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { describe, expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine, type DecideEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const startMs = 1_790_000_000_000 - (1_790_000_000_000 % hourMs)

const wide = buildLimit({ name: 'wide', size: 100 })
const shadow = buildLimit({ name: 'shadow', size: 2, mode: 'shadow' })

async function one(engine: DecideEngine, request: LimitRequest, nowMs: number): Promise<Outcome | undefined> {
  const { outcomes } = await engine.decide({ requests: [request], nowMs })
  return outcomes[0]
}

describe.each([
  ['model', async () => createModelEngine()],
  ['redis', async () => createRedisEngine(await openLimiterRedis(inject('redisUrl')))],
])('in %s', (_, open) => {
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
