import { randomUUID } from 'node:crypto'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import type { Redis } from 'ioredis'
import { describe, expect, inject, test } from 'vitest'
import { createRedisEngine, decideSource } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const nowMs = 1_790_000_000_000
const nowText = String(nowMs * 1_000)

/** What the codec would never send. */
async function evalRaw(redis: Redis, keys: readonly string[], argv: readonly string[]): Promise<unknown> {
  const reply = await redis.callBuffer('eval', decideSource, keys.length, ...keys, ...argv)
  if (!Buffer.isBuffer(reply)) return reply
  return Array.from({ length: reply.length / 8 }, (_, at) => reply.readDoubleBE(at * 8))
}

test('32 requests in one call see each other in their order', async () => {
  const engine = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
  const limits = [buildLimit({ size: 31 })]
  const requests = Array.from({ length: 32 }, () => buildLimitRequest({ limits }))
  const { outcomes } = await engine.decide({ requests, nowMs })
  const used = outcomes.map((outcome) => ('limits' in outcome ? outcome.limits[0]?.used : undefined))
  expect(used).toEqual([...Array.from({ length: 31 }, (_, at) => at + 1), 31])
  expect(outcomes.at(-1)).toMatchObject({ allowed: false, reason: 'limit' })
})

test('16 limits are decided together, and the 16th can refuse', async () => {
  const engine = createRedisEngine(await openLimiterRedis(inject('redisUrl')))
  const limits = Array.from({ length: 16 }, (_, at) => buildLimit({ name: `limit-${at}`, size: 20 - at }))
  const requests = [buildLimitRequest({ limits, cost: 5 }), buildLimitRequest({ limits })]
  const { outcomes } = await engine.decide({ requests, nowMs })
  expect(outcomes).toMatchObject([{ allowed: true }, { allowed: false, deniedBy: 'limit-15' }])
})

describe('a malformed request fails alone', () => {
  const limits =
    '[["fixed_window",0,0,10,60000],["fixed_window",2,0,10,60000],["no_such",0,0,1,1],["fixed_window",0,0,-1,60000],7,["fixed_window",0,9,10,60000]]'
  test.each([
    ['a cost below 0', '[0,-1,1,1]', -2],
    ['a broken cost', '[0,1.5,1,1]', -2],
    ['a cost above 2^53 - 1', '[0,9007199254740992,1,1]', -2],
    ['a cost that is text', '[0,"1",1,1]', -2],
    ['no cost', '[0]', -2],
    ['no limits', '[0,1]', -1],
    ['half a pair', '[0,1,1]', -1],
    ['an unknown operation', '[7,1,1,1]', -1],
    ['no list', '"x"', -1],
    ['17 limits', `[0,1${Array.from({ length: 17 }, (_, at) => `,1,${at + 2}`).join('')}]`, -1],
    ['an unknown position of a limit', '[0,1,9,1]', -3],
    ['an unknown mode', '[0,1,2,1]', -3],
    ['an unknown algorithm', '[0,1,3,1]', -3],
    ['a size below 0', '[0,1,4,1]', -3],
    ['a limit that is no list', '[0,1,5,1]', -3],
    ['a block that is missing', '[0,1,6,1]', -4],
    ['a block that is a count', '[0,1,6,1,1]', -4],
    ['a refund without its time', '[2,1,-1,1,1]', -1],
    ['an idempotent request without an id', '[3,1,0,9,"",2,1,1]', -1],
    ['an idempotent request without a marker', '[3,1,0,9,"a",19,1,1]', -4],
    ['an idempotent request without the most markers', '[3,1,0,-1,"a",2,1,1]', -1],
    ['an idempotent request whose markers are counted nowhere', '[3,1,19,9,"a",2,1,1]', -4],
    ['an unknown position of a key', '[0,1,1,19]', -4],
    ['one key twice', '[0,1,1,1,1,1]', -4],
  ])('%s', async (_, malformed, code) => {
    const redis = await openLimiterRedis(inject('redisUrl'))
    const key = `test:${randomUUID()}`
    const keys = Array.from({ length: 18 }, (_, at) => `${key}:${at}`)
    const reply = await evalRaw(redis, keys, [nowText, limits, `[[0,1,1,1],${malformed},[0,2,1,1]]`])
    const resetMs = 60_000 - (nowMs % 60_000)
    expect(reply).toEqual([nowMs * 1_000, 0, 1, 0, 0, 1, 9, resetMs, code, 1, 0, 0, 3, 7, resetMs])
  })
})

test('a log whose key holds something else fails its own requests, and changes nothing of theirs', async () => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const [list, other] = [`test:${randomUUID()}`, `test:${randomUUID()}`]
  await redis.rpush(list, 'no string')
  const limits = '[["sliding_log",0,0,100,60000],["fixed_window",0,0,100,60000]]'
  const reply = await evalRaw(redis, [list, other], [nowText, limits, '[[0,1,2,2,1,1],[0,1,2,2]]'])
  expect(reply).toEqual([nowMs * 1_000, 0, -5, 1, 0, 0, 1, 99, 60_000 - (nowMs % 60_000)])
  // Also after one another: nothing that was planned for one stays in the reply of the next.
  const many = [list, ...Array.from({ length: 15 }, () => `test:${randomUUID()}`)]
  for (let count = 1; count <= 32; count += 1) {
    for (const length of [1, 2, 7, 14]) {
      const failing = `[0,1,${Array.from({ length }, (_, at) => `2,${at + 2}`).join(',')},1,1]`
      const replied = await evalRaw(redis, many, [nowText, limits, `[${Array(count).fill(failing).join(',')}]`])
      expect([count, length, replied]).toEqual([count, length, [nowMs * 1_000, 0, ...Array(count).fill(-5)]])
    }
  }
})

test.each([
  ['33 requests', [nowText, '[["fixed_window",0,0,1,1]]', `[${Array(33).fill('[0,1,1,1]').join(',')}]`]],
  ['no request', [nowText, '[]', '[]']],
  ['text that is no JSON', [nowText, '[', '[[0,1,1,1]]']],
  ['a time that is none', ['yesterday', '[]', '[[0,1,1,1]]']],
  ['an argument too few', [nowText, '[]']],
])('a call with %s is refused whole, by code', async (_, argv) => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  await expect(evalRaw(redis, [`test:${randomUUID()}`], argv)).rejects.toThrow(/^DECIDEARGS /)
})
