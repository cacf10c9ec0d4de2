import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { RedisLimitStore, type RedisLimitStoreOptions } from '@weir/redis/redis-limit-store.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { until } from '../support/until.ts'

const [size, expiresMs] = [2, 5_000]

/** A gateway's slots: it gives one back for each that it asked for. */
async function openSlots(url: string, options: Pick<RedisLimitStoreOptions, 'deadlineMs' | 'now'>) {
  const redis = await openLimiterRedis(url)
  const parts = { clock: { nowMs: () => options.now?.() ?? Date.now() }, periodBoundaries: createBoundaryCache() }
  const store = await forTest(new RedisLimitStore({ redis, ...parts, ...options }))
  const span = { kind: 'window', ms: expiresMs } as const
  const limit = buildLimit({ algorithm: 'concurrency', name: 'slots', size, capacity: size, span })
  const request = buildLimitRequest({ scope: buildScope({ subject: `gateway-${randomUUID()}` }), limits: [limit] })
  const charged = { ...request, limits: [{ ...limit, onExceed: { kind: 'charge' } as const }] }
  return {
    async take() {
      const { exceededMask, limits, charged: isCharged } = await store.decide(charged)
      return { fits: exceededMask === 0, used: limits[0]?.used, isCharged }
    },
    async used() {
      const { reason, limits } = await store.decide({ ...request, cost: 0, peek: true })
      return reason === 'unavailable' ? reason : limits[0]?.used
    },
    countRefused: () => store.renew({ request, atUs: 0 }),
    giveBack: () => store.release({ request, atUs: 0 }),
  }
}

test('slots that a gateway lost end in their time, however often others are refused and given back meanwhile', async () => {
  const clock = { ms: 1_790_000_000_000 }
  const { take, giveBack } = await openSlots(inject('redisUrl'), { deadlineMs: 20_000, now: () => clock.ms })
  const lostMs = clock.ms
  expect([await take(), await take()]).toEqual([
    { fits: true, used: 1, isCharged: 'yes' },
    { fits: true, used: 2, isCharged: 'yes' },
  ])
  for (; clock.ms < lostMs + expiresMs; clock.ms += 500) {
    const taken = await take()
    expect({ afterMs: clock.ms - lostMs, ...taken }).toMatchObject({ afterMs: clock.ms - lostMs, fits: false, used: 2 })
    await giveBack()
  }
  // Ends are whole seconds, rounded up.
  clock.ms += 1_000
  expect(await take()).toEqual({ fits: true, used: 1, isCharged: 'yes' })
  await giveBack()
  expect(await take()).toEqual({ fits: true, used: 1, isCharged: 'yes' })
})

test('what is refused frees no slot of another when it is given back, also if its end passes before', async () => {
  const clock = { ms: 1_790_000_000_000 }
  const { take, used, giveBack } = await openSlots(inject('redisUrl'), { deadlineMs: 20_000, now: () => clock.ms })
  await take() // lost
  clock.ms += 2_000
  await take()
  expect(await take()).toMatchObject({ fits: false })
  clock.ms += expiresMs - 1_000
  expect(await used()).toBe(1)
  await giveBack()
  expect(await used()).toBe(1)
  await giveBack()
  expect(await used()).toBe(0)
})

test('no slot of another is freed by one that Redis was asked for too late, or not at all', async () => {
  const server = await forTest(startServer(redisServer))
  const { take, used, countRefused, giveBack } = await openSlots(server.address, { deadlineMs: 25 })
  await until(async () => (await used()) === 0)
  for (const _ of [1, 2]) await take()
  process.kill(server.pid(), 'SIGSTOP')
  const found = []
  for (const _ of Array(10)) {
    const { isCharged } = await take()
    found.push(isCharged)
    if (isCharged === 'no') await countRefused()
    await giveBack()
  }
  process.kill(server.pid(), 'SIGCONT')
  expect(new Set(found)).toEqual(new Set(['unknown', 'no']))
  await until(async () => (await used()) !== 'unavailable')
  expect(await used()).toBe(2)
  // What could not be sent follows.
  for (const _ of [1, 2]) await giveBack()
  await until(async () => (await used()) === 0)
})

test('after an outage with more slots than are kept, none of those in flight is free', async () => {
  const server = await forTest(startServer(redisServer))
  const { take, used, countRefused, giveBack } = await openSlots(server.address, { deadlineMs: 25 })
  await until(async () => (await used()) === 0)
  for (const _ of [1, 2]) await take()
  process.kill(server.pid(), 'SIGSTOP')
  await until(async () => (await take()).isCharged === 'no')
  for (const _ of Array(1_500)) {
    await countRefused()
    await giveBack()
  }
  process.kill(server.pid(), 'SIGCONT')
  await until(async () => (await used()) !== 'unavailable')
  expect(await used()).toBe(2)
})
