import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createRedisEngine } from '../support/decide-engines.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const openEngine = async () => createRedisEngine(await openLimiterRedis(inject('redisUrl')))
const nowMs = 1_790_000_000_000
const [_wide, _narrow] = [buildLimit({ name: 'wide', size: 100 }), buildLimit({ name: 'narrow', size: 3 })]

test('over random requests, only a charged one changes any key', async () => {
  const random = createSeededRandom()
  const engine = await openEngine()
  const limits = [3, 7, 12, 20].map((size) => buildLimit({ name: `of-${size}`, size }))
  for (let at = 0; at < 300; at += 1) {
    const [first, ...rest] = limits
    const chosen = rest.filter(() => random.oneIn(2))
    const request = buildLimitRequest({
      limits: first === undefined || random.oneIn(3) ? limits : [...chosen, first],
      cost: random.integer(0, 5),
      peek: random.oneIn(4),
    })
    const before = await engine.dump()
    const { outcomes } = await engine.decide({ requests: [request], nowMs: nowMs + at * 700 })
    const charged = outcomes.some((outcome) => 'charged' in outcome && outcome.charged === 'yes')
    const context = `WEIR_TEST_SEED=${random.seed}, step ${at}`
    if (charged && request.cost > 0) expect(await engine.dump(), context).not.toEqual(before)
    else expect(await engine.dump(), context).toEqual(before)
  }
})
