import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { algorithms } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { Outcome } from '@weir/core/limits/script-codec.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { describe, expect, inject, test } from 'vitest'
import { createRedisEngine, type RedisEngine } from '../support/decide-engines.ts'
import { getThenSet, incrThenExpire, runRecipe } from '../support/recipes/recipes.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const windowMs = 60_000
const startMs = 1_790_000_000_000 - (1_790_000_000_000 % windowMs)
const openRedis = () => openLimiterRedis(inject('redisUrl'))
const newKey = () => `recipe:${randomUUID()}`
const isAllowed = (outcome: Outcome | undefined) => outcome !== undefined && 'allowed' in outcome && outcome.allowed

/** Decides one request after the other, each in a call of its own. */
async function decideEach(engine: RedisEngine, request: LimitRequest, times: readonly number[]) {
  const allowed: boolean[] = []
  for (const nowMs of times) allowed.push(isAllowed((await engine.decide({ requests: [request], nowMs })).outcomes[0]))
  return allowed
}

describe('INCR, then EXPIRE', () => {
  test('the recipe: a process that dies between the two leaves a count that never ends', async () => {
    const [redis, key] = [await openRedis(), newKey()]
    const dying = incrThenExpire(redis, key, windowMs)
    await dying.next()
    await dying.return(undefined)
    for await (const count of incrThenExpire(redis, key, windowMs)) expect(count).toBe(2)
    expect(await redis.pttl(key)).toBe(-1)
    await redis.del(key)
  })

  test.each(algorithms)('Weir: no key is ever there without its expiry: %s', async (algorithm) => {
    const redis = await openRedis()
    const engine = createRedisEngine(redis)
    const request = buildLimitRequest({ limits: [buildLimit({ algorithm, size: 50 })] })
    for (let at = 0; at < 60; at += 1) {
      await engine.decide({ requests: [request], nowMs: startMs + at * 700 })
      const [key = ''] = await engine.keys()
      expect(await redis.pttl(key)).toBeGreaterThan(0)
    }
  })
})

describe('charging before comparing', () => {
  test('the recipe: a refused cost takes the room that a smaller one had', async () => {
    const [redis, key] = [await openRedis(), newKey()]
    const ask = (cost: number) => runRecipe(redis, 'counter-charged-first', key, 10, windowMs, cost)
    expect([await ask(8), await ask(5), await ask(1)]).toEqual([true, false, false])
  })

  test.each(algorithms)('Weir: a refused cost takes nothing: %s', async (algorithm) => {
    const engine = createRedisEngine(await openRedis())
    const limits = [buildLimit({ algorithm, size: 10 })]
    const requests = [8, 5, 1].map((cost) => buildLimitRequest({ limits, cost }))
    const { outcomes } = await engine.decide({ requests, nowMs: startMs })
    expect(outcomes.map(isAllowed)).toEqual([true, false, true])
  })
})

describe('GET, then SET', () => {
  test('the recipe: two that read before either wrote are both admitted, and one of them is not counted', async () => {
    const [one, other, key] = [await openRedis(), await openRedis(), newKey()]
    const racing = [getThenSet(one, key, 1, windowMs), getThenSet(other, key, 1, windowMs)]
    const admitted = await Promise.all(racing.map((steps) => steps.next()))
    await Promise.all(racing.map((steps) => steps.next()))
    expect(admitted.map(({ value }) => value)).toEqual([true, true])
    expect(await one.get(key)).toBe('1')
  })

  test.each(algorithms)(
    'Weir: of 100 at once on four connections exactly the size is admitted: %s',
    async (algorithm) => {
      const connections = await Promise.all(Array.from({ length: 4 }, openRedis))
      const stores = connections.map(
        (redis) =>
          new RedisLimitStore({
            redis,
            clock: systemClock,
            periodBoundaries: createBoundaryCache(),
            deadlineMs: 10_000,
          }),
      )
      const limits = [buildLimit({ algorithm, size: 7, span: { kind: 'window', ms: 86_400_000 } })]
      const request = buildLimitRequest({ scope: buildScope({ subject: randomUUID() }), limits })
      const decisions = await Promise.all(
        Array.from({ length: 25 }, () => stores.map((store) => store.decide(request))).flat(),
      )
      expect(decisions.filter(({ allowed }) => allowed).length).toBe(7)
    },
  )
})

describe('a sorted set whose members are times', () => {
  test('the recipe: all of one millisecond count as one', async () => {
    const [redis, key] = [await openRedis(), newKey()]
    const admitted = [1, 2, 3, 4].map(() => runRecipe(redis, 'log-of-times', key, 2, windowMs, startMs))
    expect(await Promise.all(admitted)).toEqual([true, true, true, true])
    expect(await redis.zcard(key)).toBe(1)
  })

  test('Weir: of one microsecond all count', async () => {
    const engine = createRedisEngine(await openRedis())
    const request = buildLimitRequest({ limits: [buildLimit({ algorithm: 'sliding_log', size: 2 })] })
    expect(await decideEach(engine, request, [startMs, startMs, startMs, startMs])).toEqual([true, true, false, false])
  })
})

describe('a sorted set that adds before it counts', () => {
  const times = Array.from({ length: 8 }, (_, at) => startMs + at * 20_000)

  test('the recipe: a client that goes on trying is never admitted again', async () => {
    const [redis, key] = [await openRedis(), newKey()]
    const admitted: boolean[] = []
    for (const ms of times) admitted.push(await runRecipe(redis, 'log-added-first', key, 1, windowMs, ms, randomUUID()))
    expect(admitted).toEqual([true, false, false, false, false, false, false, false])
  })

  test('Weir: a client that goes on trying is admitted as soon as there is room', async () => {
    const engine = createRedisEngine(await openRedis())
    const request = buildLimitRequest({ limits: [buildLimit({ algorithm: 'sliding_log', size: 1 })] })
    expect(await decideEach(engine, request, times)).toEqual([true, false, false, true, false, false, true, false])
  })
})

describe('two limits, one after the other', () => {
  test('the recipe: what the second refuses has cost the first, until nothing is left there either', async () => {
    const redis = await openRedis()
    const [wide, narrow] = [newKey(), newKey()]
    const ask = async () =>
      (await runRecipe(redis, 'counter-compared-first', wide, 5, windowMs, 1)) &&
      (await runRecipe(redis, 'counter-compared-first', narrow, 1, windowMs, 1))
    expect([await ask(), await ask(), await ask(), await ask(), await ask()]).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
    expect(await redis.mget(wide, narrow)).toEqual(['5', '1'])
  })

  test.each(algorithms)('Weir: what one of them refuses costs none: %s', async (algorithm) => {
    const engine = createRedisEngine(await openRedis())
    const limits = [5, 1].map((size) => buildLimit({ name: `of-${size}`, algorithm, size }))
    const both = buildLimitRequest({ limits })
    expect(await decideEach(engine, both, Array(5).fill(startMs))).toEqual([true, false, false, false, false])
    const { outcomes } = await engine.decide({ requests: [{ ...both, peek: true }], nowMs: startMs })
    expect(outcomes[0]).toMatchObject({ limits: [{ used: 1 }, { used: 1 }] })
  })
})
