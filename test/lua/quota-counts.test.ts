import { randomUUID } from 'node:crypto'
import type { QuotaFloor } from '@weir/core/audit/quota.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { createQuotaCounts } from '@weir/redis/quota-counts.ts'
import type { Redis } from 'ioredis'
import { describe, expect, inject, it } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const daily = buildLimit({ name: 'daily', size: 100, span: { kind: 'period', unit: 'day' } })
const nowMs = 1_790_000_000_000
const hourMs = 3_600_000
const boundaries = [nowMs - 12 * hourMs, nowMs + 12 * hourMs, nowMs + 36 * hourMs] as const
const endMs = boundaries[1]

const countsOf = (redis: Redis, atMs = nowMs) =>
  createQuotaCounts({ serverOf: () => redis, all: () => [redis] }, () => atMs)

function floorOf(units: number, change: Partial<QuotaFloor> = {}): QuotaFloor {
  const subject = change.subject ?? `s-${randomUUID()}`
  const scope = { subject, keyId: '', route: '', method: '' }
  return { limit: daily.name, ...scope, endMs, units, key: limitKey(daily, { ...scope, ip: '' }), ...change }
}

describe('raising a quota to what is known to have been used', () => {
  it('makes a count that is gone, so that decisions go on from it and the key expires with the period', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const floor = floorOf(97)
    expect(await countsOf(redis).raise([floor])).toEqual([{ outcome: 'raised', before: 0, endMs: 0, now: 97 }])
    const ttlMs = await redis.pttl(floor.key)
    expect(ttlMs).toBeGreaterThan(12 * hourMs - 60_000)
    expect(ttlMs).toBeLessThanOrEqual(12 * hourMs + 2_000)
    await redis.rename(floor.key, 'moved') // the engine has keys of its own
    const engine = createRedisEngine(redis)
    const request = buildLimitRequest({ limits: [daily], cost: 2 })
    await engine.decide({ requests: [request], nowMs, boundaries })
    const [key = ''] = await engine.keys()
    await countsOf(redis).raise([{ ...floor, key }])
    const { outcomes } = await engine.decide({ requests: [request, request], nowMs, boundaries })
    expect(outcomes).toMatchObject([
      { allowed: true, limits: [{ used: 99, remaining: 1 }] },
      { allowed: false, limits: [{ used: 99 }] },
    ])
  })

  it('lowers one to a lower floor only while no request has changed it since it was raised', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const counts = countsOf(redis)
    const floor = floorOf(10)
    await counts.raise([floor])
    const of = (units: number) => new Map([[floor.key, units]])
    const raise = async (units: number, before: number, seen?: number) => {
      const earlier = { before: of(before), seen: seen === undefined ? undefined : of(seen) }
      const [count] = await counts.raise([{ ...floor, units }], earlier)
      return `${count?.outcome} ${count?.now}`
    }
    expect(await raise(4, 9)).toBe('left 10')
    expect(await raise(4, 10, 9)).toBe('left 10')
    expect(await raise(4, 10, 10)).toBe('lowered 4')
    expect(await raise(3, 10)).toBe('left 4')
    expect(await raise(5, 0, 3)).toBe('left 4')
    expect(await raise(5, 0, 4)).toBe('raised 5')
    expect(await raise(0, 5)).toBe('lowered 0')
  })

  it('never lowers one, however often it is asked', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const counts = countsOf(redis)
    const floor = floorOf(10)
    await counts.raise([floor])
    for (const units of [0, 9, 10]) {
      expect(await counts.raise([{ ...floor, units }])).toEqual([{ outcome: 'left', before: 10, endMs, now: 10 }])
    }
    expect(await counts.raise([{ ...floor, units: 11 }])).toEqual([{ outcome: 'raised', before: 10, endMs, now: 11 }])
    expect(await counts.look([floor])).toEqual([{ outcome: 'left', before: 11, endMs, now: 11 }])
  })

  it('leaves a period that has ended, and one that another period has taken the place of', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const floor = floorOf(10)
    expect(await countsOf(redis, endMs).raise([floor])).toEqual([{ outcome: 'over', before: 0, endMs: 0, now: 0 }])
    expect(await redis.exists(floor.key)).toBe(0)
    await countsOf(redis).raise([floor])
    const otherZone = { ...floor, endMs: endMs + hourMs, units: 50 }
    expect(await countsOf(redis).raise([otherZone])).toEqual([{ outcome: 'other', before: 10, endMs, now: 10 }])
    // The day after, the old one counts as none.
    const nextEndMs = endMs + 24 * hourMs
    expect(await countsOf(redis, endMs).raise([{ ...floor, endMs: nextEndMs, units: 3 }])).toEqual([
      { outcome: 'raised', before: 0, endMs: 0, now: 3 },
    ])
  })

  it('does hundreds at once, each with its own answer, and puts a limit of another kind aside', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const floors = Array.from({ length: 250 }, (_, at) => floorOf(at + 1))
    await redis.set(floors[7]?.key ?? '', 'another algorithm', 'PX', 60_000)
    const answers = await countsOf(redis).raise(floors)
    expect(answers.map(({ outcome, now }) => `${outcome} ${now}`)).toEqual(floors.map(({ units }) => `raised ${units}`))
  })

  it('finds the counts of a quota among all keys, but not blocks and other limits', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const name = `quota-${randomUUID()}`
    const keys = [`weir:1:{a}:${name}`, `weir:1:{b}:${name}:route=GET%20%2F`]
    const others = [`weir:1:{a}:${name}:blocked`, `weir:1:{a}:${name}x`, `weir:1:{a}:_once:${name}`]
    for (const key of [...keys, ...others]) await redis.set(key, 'x', 'PX', 60_000)
    expect(await countsOf(redis).find(new Set([name]))).toEqual(keys)
  })

  it('refuses a malformed call whole', async () => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const floor = floorOf(10)
    for (const units of [1.5, -1])
      await expect(countsOf(redis).raise([floor, { ...floor, units }])).rejects.toThrow('FLOORARGS')
    expect(await redis.exists(floor.key)).toBe(0)
  })
})
