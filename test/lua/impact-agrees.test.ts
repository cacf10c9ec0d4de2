import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import { type Algorithm, algorithms, type Limit, type Span } from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { Replay } from '@weir/explain/impact/replay.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { expect, inject, test } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const minuteMs = 60_000
const startMs = 1_790_000_000_000 - (1_790_000_000_000 % 86_400_000) + 86_400_000 - 20 * minuteMs
const requestsMin = 250
const rounds = 3
const periodBoundaries = createBoundaryCache()
const boundariesAt = (nowMs: number) => periodBoundaries('day', 'UTC', 1, nowMs)

function drawLimit(random: SeededRandom, name: string, algorithm: Algorithm, blockMs: number): Limit {
  const isPeriod = algorithm === 'fixed_window' && random.oneIn(4)
  const window = random.pick([1_000, 7_000, 10_000, 30_000, 45_000, 60_000, 60_000, 90_000, 300_000, 1_200_000])
  const span: Span = isPeriod ? { kind: 'period', unit: 'day' } : { kind: 'window', ms: window }
  const size = random.integer(1, isPeriod ? 400 : 60)
  const capacity = algorithm === 'token_bucket' && random.oneIn(2) ? random.integer(1, 80) : size
  const mode = name !== 'a' && random.oneIn(8) ? 'shadow' : 'enforce'
  const onExceed = name !== 'a' && random.oneIn(8) ? ({ kind: 'degrade' } as const) : ({ kind: 'deny' } as const)
  const by = random.pick([
    [{ kind: 'subject' }],
    [{ kind: 'subject' }],
    [{ kind: 'key' }],
    [{ kind: 'subject' }, { kind: 'route' }],
    [{ kind: 'subject' }, { kind: 'ip' }],
  ] as const)
  return buildLimit({
    name,
    algorithm,
    size,
    capacity,
    span,
    mode,
    by: [...by],
    ...(blockMs > 0 ? { blockMs } : { onExceed }),
  })
}

const routes = [
  { route: 'GET /one', cost: () => 1 },
  { route: 'POST /five', cost: () => 5 },
  // Another cost in each minute.
  { route: 'POST /any', cost: (atMs: number) => 1 + (Math.floor(atMs / minuteMs) % 9) },
] as const

type Asked = ReturnType<typeof drawAsked>
const drawAsked = (random: SeededRandom, atMs: number) => {
  const { route, cost } = random.pick([routes[0], routes[0], routes[1], random.oneIn(9) ? routes[2] : routes[0]])
  const scope = buildScope({ route, keyId: random.pick(['a', 'b']), ip: random.pick(['192.0.2.1', '192.0.2.2']) })
  return { atMs, scope, cost: cost(atMs), count: random.oneIn(20) ? random.integer(2, 32) : 1 }
}

/** Quiet times and bursts. */
function drawTraffic(random: SeededRandom): readonly Asked[] {
  const traffic: Asked[] = []
  let atMs = startMs
  while (traffic.length < requestsMin) {
    const [length, step] = random.pick<readonly [number, number]>([
      [5, 20_000],
      [40, 900],
      [60, 120],
      [30, 4_000],
      [1, 400_000],
    ])
    for (let at = 0; at < length; at += 1) {
      atMs += random.integer(0, step)
      traffic.push(drawAsked(random, atMs))
    }
  }
  return traffic
}

const isDecision = (outcome: object): outcome is Decision => 'allowed' in outcome

test.each<readonly [string, number, readonly [Algorithm, ...Algorithm[]]]>([
  ...algorithms.map((algorithm) => [algorithm, 0, [algorithm]] as const),
  ...algorithms.map((algorithm) => [`${algorithm} with blocks`, 40_000, [algorithm]] as const),
  ['every algorithm', 0, ['fixed_window', ...algorithms.slice(1)]],
])(
  'What other limits would have refused is replayed exactly as the script decides: %s',
  { timeout: 120_000 },
  async (_, blockMs, drawn) => {
    const random = createSeededRandom()
    const redis = await openLimiterRedis(inject('redisUrl'))
    for (let round = 0; round < rounds; round += 1) {
      const limits = ['a', 'b', 'c']
        .slice(0, random.integer(1, 3))
        .map((name) => drawLimit(random, name, random.pick(drawn), blockMs))
      const traffic = drawTraffic(random)
      const engine = createRedisEngine(redis)
      const replay = new Replay({ keyOf: limitKey, periodBoundaries })
      const what = () => `WEIR_TEST_SEED=${random.seed}, round ${round}: ${JSON.stringify(limits)}`
      for (const { atMs, scope, cost, count } of traffic) {
        const request = buildLimitRequest({ scope, cost, limits })
        const requests = Array<typeof request>(count).fill(request)
        const { outcomes } = await engine.decide({ requests, nowMs: atMs, boundaries: boundariesAt(atMs) })
        const script = new Map<string, number>()
        for (const { deniedBy } of outcomes.filter(isDecision).filter(({ allowed }) => !allowed)) {
          script.set(deniedBy, (script.get(deniedBy) ?? 0) + 1)
        }
        expect(replay.decide({ ...request, atMs, count }).refused, what()).toEqual(script)
      }
    }
  },
)
