import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { getThenSet, incrThenExpire, runRecipe } from '../support/recipes/recipes.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

// That Weir has none of these faults: expiry, all-or-nothing and races, beside this file.

const windowMs = 60_000
const startMs = 1_790_000_000_000
const openRedis = () => openLimiterRedis(inject('redisUrl'))
const newKey = () => `recipe:${randomUUID()}`

test('INCR, then EXPIRE: a process that dies between the two leaves a count that never ends', async () => {
  const [redis, key] = [await openRedis(), newKey()]
  const dying = incrThenExpire(redis, key, windowMs)
  await dying.next()
  await dying.return(undefined)
  for await (const count of incrThenExpire(redis, key, windowMs)) expect(count).toBe(2)
  expect(await redis.pttl(key)).toBe(-1)
  await redis.del(key)
})

test('charging before comparing: a refused cost takes the room that a smaller one had', async () => {
  const [redis, key] = [await openRedis(), newKey()]
  const ask = (cost: number) => runRecipe(redis, 'counter-charged-first', key, 10, windowMs, cost)
  expect([await ask(8), await ask(5), await ask(1)]).toEqual([true, false, false])
})

test('GET, then SET: two that read before either wrote are both admitted, and one of them is not counted', async () => {
  const [one, other, key] = [await openRedis(), await openRedis(), newKey()]
  const racing = [getThenSet(one, key, 1, windowMs), getThenSet(other, key, 1, windowMs)]
  const admitted = await Promise.all(racing.map((steps) => steps.next()))
  await Promise.all(racing.map((steps) => steps.next()))
  expect(admitted.map(({ value }) => value)).toEqual([true, true])
  expect(await one.get(key)).toBe('1')
})

test('a sorted set whose members are times: all of one millisecond count as one', async () => {
  const [redis, key] = [await openRedis(), newKey()]
  const admitted = [1, 2, 3, 4].map(() => runRecipe(redis, 'log-of-times', key, 2, windowMs, startMs))
  expect(await Promise.all(admitted)).toEqual([true, true, true, true])
  expect(await redis.zcard(key)).toBe(1)
})

test('a sorted set that adds before it counts: a client that goes on trying is never admitted again', async () => {
  const [redis, key] = [await openRedis(), newKey()]
  const admitted: boolean[] = []
  for (let ms = startMs; ms < startMs + 160_000; ms += 20_000) {
    admitted.push(await runRecipe(redis, 'log-added-first', key, 1, windowMs, ms, randomUUID()))
  }
  expect(admitted).toEqual([true, ...Array(7).fill(false)])
})

test('two limits, one after the other: what the second refuses has cost the first, until nothing is left there either', async () => {
  const redis = await openRedis()
  const [wide, narrow] = [newKey(), newKey()]
  const ask = async () =>
    (await runRecipe(redis, 'counter-compared-first', wide, 5, windowMs, 1)) &&
    (await runRecipe(redis, 'counter-compared-first', narrow, 1, windowMs, 1))
  const admitted = [await ask(), await ask(), await ask(), await ask(), await ask()]
  expect(admitted).toEqual([true, ...Array(4).fill(false)])
  expect(await redis.mget(wide, narrow)).toEqual(['5', '1'])
})
