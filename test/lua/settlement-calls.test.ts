import { randomUUID } from 'node:crypto'
import type { SettlementLimit } from '@weir/core/limits/script-codec.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { SettlementCalls } from '@weir/redis/settlement-calls.ts'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { until } from '../support/until.ts'

const [before, after] = [Buffer.from('before'), Buffer.from('after')]
const nowMs = 1_790_000_000_000

/** Markers of one subject, and one count of 100 for all. */
async function open(markers: number, redisUrl = inject('redisUrl')) {
  const redis = await openLimiterRedis(redisUrl)
  const clock = { ms: nowMs }
  const calls = new SettlementCalls(redis, () => clock.ms)
  const subject = `{${randomUUID()}}`
  const keys = Array.from({ length: markers }, (_, at) => `${subject}:${at}`)
  await redis.mset(...keys.flatMap((key) => [key, before]))
  const definition = '["fixed_window",0,0,100,0,0,1790000000001,1790000000002]'
  const limit: SettlementLimit = ['month', 100, `${subject}:count`, definition]
  const replace = (key: string, change: unknown, was = before) => {
    const correction = { limits: [limit], changes: [change], untilMs: nowMs, repeatedMs: 60_000, atUs: nowMs * 1_000 }
    return calls.replace({ key, before: was, after, correction })
  }
  return { redis, clock, calls, keys, replace, limit }
}

/** Of a reply: whether the count changed, and what is used now. */
const counted = (reply: Buffer | null) => [reply?.readDoubleBE(8), reply?.readDoubleBE(16)]

test('what is settled while a call is in flight shares the next one, and each sees the counts of those before', async () => {
  const { redis, keys, calls, replace } = await open(80)
  const [scripts, reads] = [vi.spyOn(redis, 'callBuffer'), vi.spyOn(redis, 'mgetBuffer')]
  await replace('{another}', 1) // Redis knows the script from here on
  scripts.mockClear()
  expect(await Promise.all(keys.map((key) => calls.read(key)))).toEqual(keys.map(() => before))
  const replies = await Promise.all(keys.map((key) => replace(key, 1)))
  expect([reads.mock.calls.length, scripts.mock.calls.length]).toEqual([3, 3])
  expect(replies.map(counted)).toEqual(keys.map((_, at) => [1, at + 1]))
})

test('in a call each settlement stands alone: one with another marker, or malformed, changes nothing of the rest', async () => {
  const { redis, keys, replace, limit } = await open(5)
  const [first = '', other = '', negative = '', alien = '', last = ''] = keys
  await redis.del(alien)
  await redis.rpush(alien, 'a list')
  const replies = await Promise.allSettled([
    replace(first, 2),
    replace(other, 4, Buffer.from('another')),
    replace(negative, [-1, 8]),
    replace(alien, 16),
    replace(last, [0, 32]),
  ])
  expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect(replies[2]).toMatchObject({ reason: { message: expect.stringMatching(/^SETTLEARGS .*a number is no count/) } })
  const answered = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []))
  expect(answered.map(counted)).toEqual([
    [1, 2],
    [undefined, undefined],
    [undefined, undefined],
    [1, 34],
  ])
  expect(await redis.mget(first, other, negative, last)).toMatchObject([
    expect.stringMatching(/^after/),
    'before',
    'before',
    expect.stringMatching(/^after/),
  ])
  expect(await redis.pttl(limit[2])).toBeGreaterThan(0)
})

test('a log is not read whole with the other counts', async () => {
  // A Redis of its own: ioredis loses a monitor of one that others use when their calls arrive with its `OK`.
  const server = await forTest(startServer(redisServer))
  const { redis, keys, calls } = await open(1, server.address)
  const [key = ''] = keys
  const log: SettlementLimit = ['log', 100, `${key}:log`, '["sliding_log",0,0,100,60000]']
  const window: SettlementLimit = ['window', 100, `${key}:window`, '["fixed_window",0,0,100,60000]']
  const read: string[][] = []
  const monitor = await redis.monitor()
  onTestFinished(() => monitor.disconnect())
  monitor.on('monitor', (_, [name, ...names]: string[]) => name === 'MGET' && read.push(names))
  const limits = [log, window]
  const correction = { limits, changes: [3, 3], untilMs: nowMs, repeatedMs: 60_000, atUs: nowMs * 1_000 }
  const reply = await calls.replace({ key, before, after, correction })
  expect([counted(reply), reply?.readDoubleBE(48)]).toEqual([[1, 3], 3])
  await until(() => read.some(([first]) => first === key))
  expect(read.filter(([first]) => first === key)).toEqual([[key, `${key}:window`]])
})

/** What is used of a count of 100, and what is held of it. */
const standing = (reply: Buffer | null) => {
  const [used = 0, remaining = 0] = [16, 24].map((at) => reply?.readDoubleBE(at))
  return { used, held: 100 - used - remaining }
}

test('in a call each settlement gives back what it held, also behind one that holds on', async () => {
  const { keys, calls, limit } = await open(5)
  const [name, size, count, definition] = limit
  const limits: readonly SettlementLimit[] = [[name, size, count, definition.replace(']', ',60000]')]]
  const change = (key: string, was: Buffer, ...units: readonly number[]) =>
    calls.replace({
      key,
      before: was,
      after,
      correction: { limits, changes: [units], untilMs: nowMs, repeatedMs: 60_000, atUs: nowMs * 1_000 },
    })
  const atUs = nowMs * 1_000
  const [one = '', two = '', renewed = '', ...spare] = keys
  for (const key of spare) await change(key, before, 0, 20, atUs, atUs, 60_000)
  expect(standing(await change(renewed, before, 0, 10, atUs, atUs, 60_000))).toEqual({ used: 0, held: 50 })
  const replies = await Promise.all([change(one, before, 20, 4), change(two, before, 20, 3)])
  expect(replies.map(standing)).toEqual([
    { used: 4, held: 30 },
    { used: 7, held: 10 },
  ])
})

test('slots are given back of the time at which they were taken last, and a marker keeps its expiry', async () => {
  const { redis, clock, keys, calls } = await open(2)
  const [taken = '', free = ''] = keys
  const limits: readonly SettlementLimit[] = [['slots', 100, `${taken}:slots`, '["concurrency",0,0,100,60000]']]
  const change = async (...units: readonly number[]) => {
    await redis.set(taken, before)
    const correction = { limits, changes: [units], untilMs: nowMs, repeatedMs: 60_000, atUs: nowMs * 1_000 }
    return counted(await calls.replace({ key: taken, before, after, correction }))
  }
  const renewedUs = (nowMs + 30_000) * 1_000
  expect(await change(0, 1)).toEqual([1, 1])
  expect(await change(1, 1, nowMs * 1_000, renewedUs)).toEqual([1, 1])
  clock.ms += 70_000
  expect(await change(1, 0, renewedUs)).toEqual([1, 0])
  await redis.pexpire(free, 90_000)
  expect(await calls.replace({ key: free, before, after })).toEqual(Buffer.alloc(0))
  expect(await redis.pttl(free)).toBeGreaterThan(80_000)
})

test('beyond 32 full calls nothing waits', async () => {
  const { keys, replace } = await open(1)
  const [key = ''] = keys
  const replies = await Promise.allSettled(Array.from({ length: 1_025 }, () => replace(key, 1)))
  const refused = replies.filter(({ status }) => status === 'rejected')
  expect(refused).toMatchObject([{ reason: { message: 'too much waits to be settled' } }])
})
