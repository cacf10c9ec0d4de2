import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Charge, LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { Outcome } from '@weir/core/limits/script-codec.ts'
import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createModelEngine, createRedisEngine, type DecideEngine, decideSource } from '../support/decide-engines.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const nowMs = 1_700_000_000_000

const limit = buildLimit({ name: 'per-value', by: [{ kind: 'attribute', name: 'value' }] })
const log = buildLimit({ ...limit, name: 'log', algorithm: 'sliding_log' })

/** What a request takes of a limit for one value. */
const apart = (of: Limit, value: string, cost: number): Limit => ({
  ...of,
  override: { named: new Map([['attribute:value', value]]), cost },
})

const request = (...limits: readonly Limit[]): LimitRequest =>
  buildLimitRequest({ limits, cost: 99, hasOverrides: true })

const decided = ([outcome]: readonly Outcome[]): Decision => {
  if (outcome === undefined || !('allowed' in outcome)) throw new Error(JSON.stringify(outcome))
  return outcome
}
const decide = async (engine: DecideEngine, asked: LimitRequest) =>
  decided((await engine.decide({ requests: [asked], nowMs })).outcomes)
const usedOf = ({ limits }: Decision) => limits.map(({ used }) => used)
const engines = async () => [createModelEngine(), createRedisEngine(await openLimiterRedis(inject('redisUrl')))]

test('each limit is counted by its own value and charged its own cost', async () => {
  for (const engine of await engines()) {
    const asked = request(apart(limit, 'a', 3), apart(limit, 'b', 1), apart(log, 'a', 2))
    expect(usedOf(await decide(engine, asked)), engine.name).toEqual([3, 1, 2])
    expect(usedOf(await decide(engine, asked)), engine.name).toEqual([6, 2, 4])
    expect(usedOf(await decide(engine, request(apart(limit, 'b', 0)))), engine.name).toEqual([2])
  }
})

test('one that has too little refuses all of them, and none is charged', async () => {
  for (const engine of await engines()) {
    const refused = await decide(engine, request(apart(limit, 'a', 1), apart(limit, 'b', 10), apart(log, 'b', 11)))
    expect(refused, engine.name).toMatchObject({ reason: 'cost_exceeds_limit', deniedBy: 'log', exceededMask: 4 })
    await decide(engine, request(apart(limit, 'b', 1)))
    const denied = await decide(engine, request(apart(limit, 'a', 1), apart(limit, 'b', 10)))
    expect(denied, engine.name).toMatchObject({
      reason: 'limit',
      deniedBy: 'per-value',
      exceededMask: 2,
      charged: 'no',
    })
    expect(usedOf(denied), engine.name).toEqual([0, 1])
  }
})

test('a look refuses where no unit is left, and takes and gives back nothing', async () => {
  const look = (of: Limit, value: string) => ({
    ...of,
    override: { ...(apart(of, value, 0).override ?? noApart), isPeek: true },
  })
  for (const engine of await engines()) {
    for (const of of [limit, log]) {
      const asked = request(look(of, 'a'), apart(of, 'b', 2))
      const charge = await decide(engine, asked)
      expect(usedOf(charge), engine.name).toEqual([0, 2])
      await engine.run({ operations: [{ kind: 'refund', request: asked, charge }], nowMs })
      await decide(engine, request(apart(of, 'a', 10)))
      const refused = await decide(engine, asked)
      expect(refused, engine.name).toMatchObject({ reason: 'limit', exceededMask: 1, charged: 'no' })
      expect(usedOf(refused), engine.name).toEqual([10, 0])
    }
  }
})

const noApart = { named: new Map<string, string>(), cost: 0 }

test('a refund gives each limit its own cost back', async () => {
  for (const engine of await engines()) {
    const asked = request(apart(limit, 'a', 3), apart(log, 'b', 2))
    const charge: Charge = await decide(engine, asked)
    await decide(engine, asked)
    await engine.run({ operations: [{ kind: 'refund', request: asked, charge }], nowMs })
    expect(usedOf(await decide(engine, { ...asked, peek: true })), engine.name).toEqual([3, 2])
  }
})

test.each([
  ['a cost too few', '[0,[1],1,1,1,2]', -2],
  ['a cost too many', '[0,[1,1,1],1,1,1,2]', -1],
  ['a cost that is none', '[0,[1,-2],1,1,1,2]', -2],
  ['no cost', '[0,[],1,1]', -2],
])('a list with %s fails its request alone', async (_, malformed, code) => {
  const redis = await openLimiterRedis(inject('redisUrl'))
  const keys = [1, 2].map((n) => `test:apart:${n}`)
  const definitions = '[["fixed_window",0,0,10,60000]]'
  const reply = await redis.callBuffer('eval', decideSource, 2, ...keys, '', definitions, `[${malformed},[1,1,1,1]]`)
  if (!Buffer.isBuffer(reply)) throw new Error('no reply')
  expect([reply.readDoubleBE(16), reply.readDoubleBE(24)]).toEqual([code, 1])
})
