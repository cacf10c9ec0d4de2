import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const size = 100_000
const startMs = 1_790_000_000_000
const logOf = (units: number) =>
  buildLimit({
    name: 'log',
    algorithm: 'sliding_log',
    size: units,
    capacity: units,
    span: { kind: 'window', ms: 60_000 },
  })
const requestOf = (cost: number, units = size) =>
  buildLimitRequest({ limits: [logOf(units)], scope: buildScope({ subject: 'acme' }), cost })

/** When, what it costs, and of which size the limit is then. */
const steps: readonly (readonly [atMs: number, cost: number, units?: number])[] = [
  [0, 65_530],
  ...Array.from({ length: 24 }, (_, at) => [1_000 + at, 1] as const),
  [20_000, 34_446],
  [20_001, 1],
  [20_002, 70_000],
  [60_000, 65_530],
  [60_999, 20],
  [61_020, 1],
  [80_000, 34_450],
  [80_001, 0],
  [120_000, 40_000, 65_535],
  [120_001, 30_000, size],
  [121_000, 99_999, size],
  [300_000, 100_000, size],
  [359_999, 1],
  [360_000, 100_000],
]

test('A log of 100,000 units, the most there are, decides as its model does, whatever slots of its ring it uses', async () => {
  const engines = [createRedisEngine(await openLimiterRedis(inject('redisUrl'))), createModelEngine()]
  for (const [atMs, cost, units] of steps) {
    const call = { requests: [requestOf(cost, units)], nowMs: startMs + atMs }
    const [found, expected] = await Promise.all(engines.map((engine) => engine.decide(call)))
    expect(found, `at ${atMs} ms, ${cost} units`).toEqual(expected)
  }
})

test('A refund and a settlement reach into a log of 100,000 units as its model says', async () => {
  const engines = [createRedisEngine(await openLimiterRedis(inject('redisUrl'))), createModelEngine()]
  for (const engine of engines) {
    const charge = async (atMs: number, cost: number) =>
      (await engine.decide({ requests: [requestOf(cost)], nowMs: startMs + atMs })).outcomes[0]
    await charge(0, 50_000)
    const middle = await charge(10, 20_000)
    await charge(20, 30_000)
    if (middle === undefined || !('atUs' in middle) || 'malformed' in middle) throw new Error('not decided')
    const settled = { request: requestOf(20_000), units: -15_000, atUs: middle.atUs, nowMs: startMs + 30 }
    expect(await engine.settle(settled), engine.name).toMatchObject([{ used: 85_000 }])
    expect(await charge(31, 15_001), engine.name).toMatchObject({ allowed: false, retryAfterMs: 59_969 })
    expect(await charge(32, 15_000), engine.name).toMatchObject({ allowed: true, limits: [{ used: size }] })
    const refund = { kind: 'refund', request: requestOf(30_000), charge: { atUs: (startMs + 20) * 1_000 } } as const
    await engine.run({ operations: [{ ...refund, charge: { ...middle, ...refund.charge } }], nowMs: startMs + 40 })
    expect(await charge(41, 30_001), engine.name).toMatchObject({ allowed: false })
    expect(await charge(42, 30_000), engine.name).toMatchObject({ allowed: true })
  }
})

test('The time of a call grows with its cost, not with the log', async () => {
  const engine = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
  const subject = `timed ${process.pid}`
  let nowMs = startMs
  const timed = async (cost: number) => {
    const { scope, ...request } = requestOf(cost)
    const from = performance.now()
    await engine.decide({ requests: [{ ...request, scope: { ...scope, subject } }], nowMs })
    return performance.now() - from
  }
  const [one, refused, all]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < 15; round += 1) {
    all.push(await timed(size))
    refused.push(await timed(60_000))
    nowMs += 600_000
    await timed(size - 1)
    one.push(await timed(1))
    nowMs += 600_000
  }
  const median = (times: readonly number[]) => times.toSorted((a, b) => a - b)[7] ?? 0
  const figures = [one, refused, all].map((times) => median(times).toFixed(2))
  process.stdout.write(`a log of ${size}: cost 1 ${figures[0]} ms, 60,000 refused ${figures[1]}, all ${figures[2]}\n`)
  expect(median(one) * 2).toBeLessThan(median(all))
})
