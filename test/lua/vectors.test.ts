import type { PeriodBoundaries, PeriodUnit } from '@weir/core/limits/limit.ts'
import { describe, expect, inject, test } from 'vitest'
import { buildLimit, buildLimitRequest } from '../support/builders/limit.ts'
import { createModelEngine, createRedisEngine, type DecideEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import cases from '../vectors/fixed-window.json' with { type: 'json' }

interface VectorLimit {
  readonly size: number
  readonly windowMs?: number
  readonly period?: string
}

interface VectorStep {
  readonly atMs: number
  readonly cost: number
  readonly peek?: boolean
  readonly limit?: VectorLimit
  readonly boundaries?: readonly number[]
  readonly reason: string
  readonly used: number
  readonly remaining: number
  readonly resetMs: number
  readonly retryAfterMs?: number
  readonly rebased?: number
}

interface VectorCase {
  readonly name: string
  readonly limit: VectorLimit
  readonly boundaries?: readonly number[]
  readonly steps: readonly VectorStep[]
}

const units: readonly PeriodUnit[] = ['minute', 'hour', 'day', 'week', 'month']

function spanOf({ windowMs, period }: VectorLimit) {
  if (windowMs !== undefined) return { kind: 'window', ms: windowMs } as const
  const unit = units.find((known) => known === period)
  if (unit === undefined) throw new Error(`a vector names no such period: ${period}`)
  return { kind: 'period', unit } as const
}

function boundariesOf(values: readonly number[] | undefined): PeriodBoundaries {
  const [startMs = 0, nextMs = 1, afterNextMs = 2] = values ?? []
  return [startMs, nextMs, afterNextMs]
}

async function runStep(engine: DecideEngine, vector: VectorCase, step: VectorStep) {
  const { size, ...span } = step.limit ?? vector.limit
  const limits = [buildLimit({ size, span: spanOf({ size, ...span }) })]
  const requests = [buildLimitRequest({ limits, cost: step.cost, peek: step.peek ?? false })]
  const boundaries = boundariesOf(step.boundaries ?? vector.boundaries)
  const { outcomes, rebased } = await engine.decide({ requests, nowMs: step.atMs, boundaries })
  expect({ at: step.atMs, rebased, outcome: outcomes[0] }).toEqual({
    at: step.atMs,
    rebased: step.rebased ?? 0,
    outcome: {
      allowed: step.reason === 'ok',
      reason: step.reason,
      deniedBy: step.reason === 'ok' ? '' : 'minute',
      charged: step.reason === 'ok' && !step.peek ? 'yes' : 'no',
      retryAfterMs: step.retryAfterMs ?? 0,
      limits: [{ name: 'minute', size, used: step.used, remaining: step.remaining, resetMs: step.resetMs }],
    },
  })
}

const vectors: readonly VectorCase[] = cases

describe.each(vectors)('fixed_window: $name', (vector) => {
  test('in the model', async () => {
    const engine = createModelEngine()
    for (const step of vector.steps) await runStep(engine, vector, step)
  })

  test('in Redis', async () => {
    const engine = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
    for (const step of vector.steps) await runStep(engine, vector, step)
  })
})
