import type { Limit, PeriodBoundaries } from '@weir/core/limits/limit.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { expect, inject, test } from 'vitest'
import { buildLimit, buildLimitRequest, buildScope } from '../support/builders/limit.ts'
import { createModelEngine, createRedisEngine, type EngineCall } from '../support/decide-engines.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const callCount = 1_500
const dayMs = 86_400_000

/** Limits as they are at this call: sizes and spans are edited all the time, names stay. */
function drawLimit(random: SeededRandom, name: string): Limit {
  const span = random.oneIn(2)
    ? ({ kind: 'window', ms: random.pick([30_000, 60_000, 3_600_000, dayMs]) } as const)
    : ({ kind: 'period', unit: 'day' } as const)
  const size = random.oneIn(20) ? Number.MAX_SAFE_INTEGER - random.integer(64, 999) : random.integer(1, 60)
  return buildLimit({ name, size, span })
}

function drawRequest(random: SeededRandom): LimitRequest {
  const names = ['a', 'b', 'c', 'd'].filter(() => random.oneIn(2))
  return buildLimitRequest({
    scope: buildScope({ subject: random.pick(['acme', 'initech', 'ip:192.0.2.9']) }),
    cost: random.oneIn(30) ? 2 ** 53 - random.integer(1, 2_000) : random.integer(0, 6),
    peek: random.oneIn(5),
    limits: (names.length === 0 ? ['a'] : names).map((name) => drawLimit(random, name)),
  })
}

/** Zones and anchors are edited, and ingresses disagree about the time: boundaries lie anywhere around now. */
function drawBoundaries(random: SeededRandom, nowMs: number): PeriodBoundaries {
  const offsetMs = random.pick([0, 0, 0, 3_600_000, 20_700_000])
  const behindDays = random.pick([0, 0, 0, 0, 0, 1, -1, 4, -4])
  const startMs = nowMs - ((nowMs + offsetMs) % dayMs) - behindDays * dayMs
  return [startMs, startMs + dayMs, startMs + 2 * dayMs + random.pick([0, 0, 3_600_000, -3_600_000])]
}

function drawCall(random: SeededRandom, lastMs: number): EngineCall {
  const stepMs = random.pick([0, 1, 100, 5_000, 20_000, 600_000, -1, -1_500, -2_000, -2_001, -10_000])
  const nowMs = lastMs + (random.oneIn(100) ? 30 * dayMs : stepMs)
  const requests = Array.from({ length: random.integer(1, 8) }, () => drawRequest(random))
  return { requests, nowMs, boundaries: drawBoundaries(random, nowMs) }
}

test('the script and its TypeScript twin agree in every field over a random walk', async () => {
  const random = createSeededRandom()
  const script = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
  const model = createModelEngine()
  let nowMs = 1_790_000_000_000
  for (let at = 0; at < callCount; at += 1) {
    const call = drawCall(random, nowMs)
    nowMs = call.nowMs
    expect(await script.decide(call), `WEIR_TEST_SEED=${random.seed}, call ${at}`).toEqual(await model.decide(call))
  }
})
