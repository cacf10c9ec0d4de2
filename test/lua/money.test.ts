import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { nanosPerRequestMax } from '@weir/core/prices/rate-card.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

/** The largest size of a limit of money, in nano-units. */
const size = 9_000_000_000_000_000
const nowMs = 1_790_000_000_000

const spans = {
  fixed_window: { kind: 'period', unit: 'month' },
  sliding_window: { kind: 'window', ms: 3_600_000 },
} as const

test.each(['fixed_window', 'sliding_window'] as const)(
  'The largest amounts of money in a %s are exact to the nano: held, settled, refused and beyond the size',
  async (algorithm) => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const periodBoundaries = createBoundaryCache()
    const now = () => nowMs
    const clock = { nowMs: now }
    const store = await forTest(new RedisLimitStore({ redis, clock, periodBoundaries, deadlineMs: 20_000, now }))
    const settlements = new RedisSettlements({ redis, owner: 'one', now, answerMs: 20_000 })
    const subject = `money-${randomUUID()}`
    const money: Partial<Limit> = {
      name: algorithm,
      algorithm,
      size,
      capacity: size,
      unit: 'usd',
      span: spans[algorithm],
    }
    const ask = (usd: number, isHeld = true) => ({
      ...buildLimitRequest({ scope: buildScope({ subject }), cost: 1, limits: [buildLimit(money)] }),
      units: new Map([['usd', usd]]),
      ...(isHeld && { reservation: { id: uuidv7(nowMs), ttlMs: 60_000, context: '{}' } }),
    })
    const decide = async (request: ReturnType<typeof ask>) => {
      const { allowed, limits } = await store.decide(request)
      return [allowed, limits[0]?.remaining]
    }
    const settle = ({ reservation }: ReturnType<typeof ask>, usd: number) =>
      settlements.settle({ subject, id: reservation?.id ?? '', units: new Map([['usd', usd]]) })

    expect(await decide(ask(size - nanosPerRequestMax - 1, false))).toEqual([true, nanosPerRequestMax + 1])
    const most = ask(nanosPerRequestMax)
    expect(await decide(most)).toEqual([true, 1])
    expect(await decide(ask(2))).toEqual([false, 1])
    const last = ask(1)
    expect(await decide(last)).toEqual([true, 0])
    expect(await settle(most, nanosPerRequestMax + 1)).toMatchObject({ kind: 'too-much', unit: 'usd' })
    expect(await settle(most, nanosPerRequestMax - 3)).toMatchObject({ kind: 'settled', limits: [{ remaining: 3 }] })
    const beyond = await settle(last, nanosPerRequestMax)
    expect(beyond).toMatchObject({
      kind: 'settled',
      limits: [{ used: size - 3 - 1 + nanosPerRequestMax, remaining: 0 }],
    })
  },
)
