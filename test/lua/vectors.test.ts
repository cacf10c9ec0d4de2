import { readFileSync } from 'node:fs'
import {
  type Algorithm,
  algorithms,
  type Limit,
  type PeriodBoundaries,
  type PeriodUnit,
} from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { describe, expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine, type DecideEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

interface VectorLimit {
  readonly size: number
  readonly burst?: number
  readonly windowMs?: number
  readonly period?: string
}

interface VectorStep {
  readonly atMs: number
  readonly cost?: number
  readonly peek?: boolean
  readonly limit?: VectorLimit
  readonly boundaries?: readonly number[]
  readonly reason?: string
  readonly used?: number
  readonly remaining?: number
  readonly resetMs?: number
  readonly retryAfterMs?: number
  readonly rebased?: number
  /** Instead of deciding: gives back what was charged then. */
  readonly refund?: { readonly cost: number; readonly atMs: number }
  readonly refunded?: boolean
}

interface VectorCase {
  readonly algorithm: Algorithm
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

function limitOf(algorithm: Algorithm, { size, burst = size, ...span }: VectorLimit): Limit {
  return buildLimit({ algorithm, size, capacity: burst, span: spanOf({ size, ...span }) })
}

function expectedOutcome(step: VectorStep, limit: Limit) {
  const { reason, cost: _, used, remaining, resetMs } = step
  const allowed = reason === 'ok'
  return {
    allowed,
    reason,
    deniedBy: allowed ? '' : 'minute',
    exceededMask: allowed ? 0 : 1,
    shadowedBy: '',
    charged: allowed && !step.peek ? 'yes' : 'no',
    retryAfterMs: step.retryAfterMs ?? 0,
    atUs: step.atMs * 1_000,
    repeats: '',
    limits: [{ name: 'minute', size: limit.capacity, used, remaining, resetMs }],
  }
}

async function runStep(engine: DecideEngine, vector: VectorCase, step: VectorStep) {
  const limit = limitOf(vector.algorithm, step.limit ?? vector.limit)
  const { atMs: nowMs, cost = step.refund?.cost ?? 1, peek = false, refund } = step
  const request = buildLimitRequest({ limits: [limit], cost, peek })
  const charge = { atUs: (refund?.atMs ?? 0) * 1_000, exceededMask: 0 }
  const operation =
    refund === undefined ? ({ kind: 'decide', request } as const) : ({ kind: 'refund', request, charge } as const)
  const boundaries = boundariesOf(step.boundaries ?? vector.boundaries)
  const { outcomes, rebased } = await engine.run({ operations: [operation], nowMs, boundaries })
  expect({ at: nowMs, rebased, outcome: outcomes[0] }).toEqual({
    at: nowMs,
    rebased: step.rebased ?? 0,
    outcome:
      refund === undefined
        ? expectedOutcome(step, limit)
        : { refundedAtUs: step.refunded === true ? nowMs * 1_000 : 0 },
  })
}

/** Every algorithm has a file of named cases. */
const casesOf = (algorithm: Algorithm): readonly VectorCase[] => {
  const text = readFileSync(new URL(`../vectors/${algorithm.replaceAll('_', '-')}.json`, import.meta.url), 'utf8')
  return JSON.parse(text).map((written: Omit<VectorCase, 'algorithm'>) => ({ ...written, algorithm }))
}

describe.each(algorithms.flatMap(casesOf))('$algorithm: $name', (vector) => {
  test('in the model', async () => {
    const engine = createModelEngine()
    for (const step of vector.steps) await runStep(engine, vector, step)
  })

  test('in Redis', async () => {
    const engine = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
    for (const step of vector.steps) await runStep(engine, vector, step)
  })
})
