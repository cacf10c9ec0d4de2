import { randomUUID } from 'node:crypto'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createProcessCount, type ProcessCount } from '@weir/redis/layers/process-count.ts'
import type { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { forFile } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

let redis: Redis
const server = await forFile(startServer(redisServer))

const soon = { timeout: 10_000, interval: 10 }

/** Beats twenty times as often as a service does, so that the tests need not wait for seconds. */
async function startProcess(key: string, connection: Redis): Promise<ProcessCount> {
  const processes = createProcessCount({ redis: connection, key, beatEveryMs: 50 })
  onTestFinished(() => processes.stop())
  await processes.start()
  return processes
}

async function startProcesses(count: number) {
  const key = `weir:1:{_processes-${randomUUID()}}`
  redis = await openLimiterRedis(server.address)
  const all: ProcessCount[] = []
  for (let left = count; left > 0; left -= 1) all.push(await startProcess(key, redis))
  return { key, all }
}

const counts = (all: readonly ProcessCount[]) => all.map((one) => one.count())

test('processes count each other, the first beat already those that were there', async () => {
  const { all } = await startProcesses(4)
  expect(all.at(-1)?.count()).toBe(4)
  await vi.waitFor(() => expect(counts(all)).toEqual([4, 4, 4, 4]), soon)
})

test('a process that stops is out of the count at once', async () => {
  const { all } = await startProcesses(3)
  await all[0]?.stop()
  await vi.waitFor(() => expect(counts(all.slice(1))).toEqual([2, 2]), soon)
})

test('one that was silent for five seconds, or is ahead of a clock that was set back, does not count', async () => {
  const { key, all } = await startProcesses(1)
  const [seconds] = await redis.time()
  const nowMs = Number(seconds) * 1_000
  const beats = { killed: nowMs - 6_000, alive: nowMs - 2_000, ahead: nowMs + 60_000 }
  for (const [id, beatMs] of Object.entries(beats)) await redis.call('ZADD', key, String(beatMs), id)
  await vi.waitFor(() => expect(all[0]?.count()).toBe(2), soon)
  expect(await redis.zscore(key, 'alive')).not.toBeNull()
  expect(await redis.zcard(key)).toBe(2)
})

test('the key expires when nobody beats any more', async () => {
  const { key, all } = await startProcesses(1)
  expect(await redis.pttl(key)).toBeGreaterThan(4_000)
  expect(await redis.pttl(key)).toBeLessThanOrEqual(5_000)
  await all[0]?.stop()
  expect(await redis.exists(key)).toBe(0)
})

test('while Redis is away the last known number stays, failures are counted, and it goes on by itself', async () => {
  const { all } = await startProcesses(2)
  await vi.waitFor(() => expect(counts(all)).toEqual([2, 2]), soon)
  await server.kill('SIGKILL')
  const [first] = all
  await vi.waitFor(() => expect(first?.counters.failures).toBeGreaterThan(3), soon)
  expect(counts(all)).toEqual([2, 2])
  await server.restart()
  const beatsBefore = first?.counters.beats ?? 0
  await vi.waitFor(() => {
    const { beats, failures } = first?.counters ?? { beats: 0, failures: 0 }
    expect(beats).toBeGreaterThan(beatsBefore)
    expect(beats - failures).toBeGreaterThan(3)
  }, soon)
})

test('a start without Redis counts itself, and a stop without it ends', async () => {
  const connection = await openLimiterRedis(server.address)
  connection.disconnect()
  const alone = await startProcess('weir:1:{_processes-none}', connection)
  expect(alone.count()).toBe(1)
  await alone.stop()
  expect(alone.counters.failures).toBeGreaterThanOrEqual(2)
})
