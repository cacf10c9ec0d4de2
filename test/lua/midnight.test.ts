import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const hourMs = 3_600_000

const size = 7
const day = buildLimit({ name: 'day', size, span: { kind: 'period', unit: 'day' } })

interface Midnight {
  readonly name: string
  readonly zone: string
  /** The first instant of the new day. */
  readonly at: string
  /** How long the day that ends there was, and the one that begins. */
  readonly hours: readonly [before: number, after: number]
}

const midnights: readonly Midnight[] = [
  { name: 'in Kathmandu', zone: 'Asia/Kathmandu', at: '2026-03-01T18:15:00Z', hours: [24, 24] },
  { name: 'before the leap day', zone: 'Asia/Kathmandu', at: '2028-02-28T18:15:00Z', hours: [24, 24] },
  { name: 'after the leap day', zone: 'UTC', at: '2028-03-01T00:00:00Z', hours: [24, 24] },
  { name: 'before a day of 23 hours', zone: 'America/New_York', at: '2026-03-08T05:00:00Z', hours: [24, 23] },
  { name: 'after a day of 23 hours', zone: 'America/New_York', at: '2026-03-09T04:00:00Z', hours: [23, 24] },
  { name: 'after a day of 25 hours', zone: 'Europe/Berlin', at: '2026-10-25T23:00:00Z', hours: [25, 24] },
  { name: 'that does not exist', zone: 'America/Sao_Paulo', at: '2018-11-04T03:00:00Z', hours: [24, 23] },
]

/**
 * Two ingresses whose clocks are a second apart, one before Redis's and one after it, so that around midnight they are
 * of different days. Redis is asked by both in turn, at its own time.
 */
function openIngresses(engine: ReturnType<typeof createRedisEngine>, zone: string) {
  const decide = async (redisMs: number, aheadMs: number, cost: number): Promise<Decision> => {
    const boundaries = periodBoundaries('day', zone, 1, redisMs + aheadMs)
    const request = buildLimitRequest({ limits: [day], cost, peek: cost === 0, timeZone: zone })
    const { outcomes } = await engine.decide({ requests: [request], nowMs: redisMs, boundaries })
    const [outcome] = outcomes
    if (outcome === undefined || !('allowed' in outcome)) throw new Error('not decided')
    return outcome
  }
  return {
    slow: (ms: number, cost = 1) => decide(ms, -500, cost),
    fast: (ms: number, cost = 1) => decide(ms, 500, cost),
  }
}

test.each(midnights)(
  'two ingresses a second apart admit the quota of each day exactly, at the midnight $name',
  async ({ zone, at, hours }) => {
    const midnightMs = Date.parse(at)
    const { slow, fast } = openIngresses(createRedisEngine(await openLimiterRedis(inject('redisUrl'))), zone)
    const admitted = { before: 0, after: 0 }
    for (let offsetMs = -1_000; offsetMs < 1_000; offsetMs += 50) {
      const nowMs = midnightMs + offsetMs
      for (const ingress of [slow, fast]) {
        const { allowed } = await ingress(nowMs)
        if (allowed) admitted[offsetMs < 0 ? 'before' : 'after'] += 1
      }
    }
    expect(admitted).toEqual({ before: size, after: size })

    const [hoursBefore, hoursAfter] = hours
    const [start, next] = periodBoundaries('day', zone, 1, midnightMs - 1)
    expect([start, next]).toEqual([midnightMs - hoursBefore * hourMs, midnightMs])
    for (const ingress of [slow, fast]) {
      const state = (await ingress(midnightMs + 999, 0)).limits[0]
      expect(state).toMatchObject({ used: size, remaining: 0, resetMs: hoursAfter * hourMs - 999 })
    }
  },
)

test('a refusal just before midnight says to wait until midnight, whichever clock asked, and then it is true', async () => {
  const midnightMs = Date.parse('2026-03-01T18:15:00Z')
  const { slow, fast } = openIngresses(createRedisEngine(await openLimiterRedis(inject('redisUrl'))), 'Asia/Kathmandu')
  expect((await slow(midnightMs - 400, size)).allowed).toBe(true)
  for (const ingress of [slow, fast]) expect((await ingress(midnightMs - 300)).retryAfterMs).toBe(300)
  expect((await fast(midnightMs - 1)).allowed).toBe(false)
  expect((await fast(midnightMs)).allowed).toBe(true)
})
