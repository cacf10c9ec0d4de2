import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { MemoryIdempotencyRecords } from '@weir/decide/testing/memory-idempotency-records.ts'
import { buildApps } from '@weir/ingress/app.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createLayers } from '@weir/redis/layers/all-layers.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { forTest } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { openLimiterRedis } from '../../support/test-redis.ts'
import { openIdentity } from './open-identity.ts'

const randomKey = () => `weir_${randomBytes(32).toString('base64url')}`

/** The proxy before a Redis of its own. There is no upstream: what passes is answered 404, decided and charged. */
async function openProxy(identity: string) {
  const server = await forTest(startServer(redisServer))
  const redis = await openLimiterRedis(server.address)
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 2_000 }
  const store = new RedisLimitStore({ redis, ...common })
  const { policy, authenticator } = await openIdentity(identity)
  const isThere = () => Promise.resolve(true)
  const log = {
    append: () => true,
    openCoalesced: () => ({ add: () => true, finallyWritten: isThere }),
    writtenInTime: isThere,
    finallyWritten: isThere,
  }
  const layers = createLayers(store, { ...common, processes: () => 1 }).store
  const idempotencyRecords = new MemoryIdempotencyRecords()
  const ports = { policy, authenticator, store: layers, idempotencyRecords, log, outcomes: log, clock: systemClock }
  const apps = await buildApps(ports, createLogger('test', 'silent'), () => '')
  onTestFinished(async () => {
    await Promise.all([apps.proxy.close(), apps.api.close()])
    await store.close()
  })
  await apps.proxy.listen({ host: '127.0.0.1', port: 0 })
  const { port } = apps.proxy.server.address() as AddressInfo
  const agents = new Map<string, Agent>()
  onTestFinished(() => {
    for (const agent of agents.values()) agent.destroy()
  })
  const status = async (from: string, headers: Record<string, string>): Promise<number> => {
    const agent = agents.get(from) ?? new Agent({ keepAlive: true, maxSockets: 4 })
    agents.set(from, agent)
    const sent = request({ host: '127.0.0.1', port, localAddress: from, agent, headers }).end()
    const [answer] = await once(sent, 'response')
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode
  }
  /** How often each status came. */
  const statuses = async (asks: readonly (readonly [string, Record<string, string>])[]) => {
    const counts: Record<number, number> = {}
    for (let at = 0; at < asks.length; at += 100) {
      for (const code of await Promise.all(asks.slice(at, at + 100).map(([from, headers]) => status(from, headers)))) {
        counts[code] = (counts[code] ?? 0) + 1
      }
    }
    return counts
  }
  return { redis, authenticator, status, statuses }
}

describe('wrong keys', () => {
  it('create nothing in Redis, 10,000 of them from a hundred addresses and 2,000 from one', async () => {
    const { redis, authenticator, status, statuses } = await openProxy('{ anonymous: free }')
    const before = await redis.dbsize()
    const many = Array.from(
      { length: 10_000 },
      (_, n) => [`127.0.1.${1 + (n % 100)}`, { 'x-api-key': randomKey() }] as const,
    )
    expect(await statuses(many)).toEqual({ 401: 10_000 })
    const one = Array.from({ length: 2_000 }, () => ['127.0.2.1', { authorization: `Bearer ${randomKey()}` }] as const)
    expect(await statuses(one)).toEqual({ 401: 100, 429: 1_900 })
    expect(await redis.dbsize()).toBe(before)
    expect(authenticator.counters).toMatchObject({ wrong: 10_100, throttled: 1_900 })
    expect(await status('127.0.2.1', {})).toBe(404) // without a credential its address is counted, as before
    expect(await redis.dbsize()).toBe(before + 1)
  })

  it('are refused with their address for the minute, but neither right ones, however new, nor other addresses', async () => {
    const { ask, time } = await openIdentity('{ keyHeaders: [x-api-key, authorization], trustedProxies: [127.0.0.9] }')
    const other = '127.0.0.2'
    const wrong = () => ({ headers: { 'x-api-key': randomKey() } })
    time.ms = Date.parse('2026-11-21T11:59:00Z') // both keys are good
    for (let n = 0; n < 100; n += 1)
      expect(await ask(wrong())).toEqual({ who: 'unauthenticated', address: '127.0.0.1' })
    time.ms += 20_000
    const shutOut = { who: 'unauthenticated', retryAfterMs: 40_000, address: '127.0.0.1' }
    expect(await ask(wrong())).toEqual(shutOut)
    for (const key of ['acme-key', 'old-key'])
      expect((await ask({ headers: { 'x-api-key': key } })).who).toBe('acme on pro')
    const pretending = { 'x-api-key': randomKey(), 'x-forwarded-for': '192.0.2.9' }
    expect(await ask({ headers: pretending })).toEqual(shutOut)
    expect(await ask({ from: other, ...wrong() })).toEqual({ who: 'unauthenticated', address: other })
    time.ms += 39_999
    expect(await ask(wrong())).toEqual({ ...shutOut, retryAfterMs: 1 })
    time.ms += 1
    expect(await ask(wrong())).toEqual({ who: 'unauthenticated', address: '127.0.0.1' })
  })
})

/** The server's end of a connection from 127.0.0.1. */
async function openSocket(): Promise<Socket> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = await once(server, 'connection')
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  return socket
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

describe('memory', () => {
  const hex = (n: number) => n.toString(16)

  it.each([
    [
      '300,000 wrong keys from as many networks',
      (n: number) => `2001:db8:${hex(n >> 16)}:${hex(n & 0xffff)}::1`,
      { calls: 300_000, hasKey: true },
    ],
    [
      '300,000 wrong keys from as many addresses of one /64',
      (n: number) => `2001:db8:1:1:${hex(n >> 16)}:${hex(n & 0xffff)}::1`,
      { calls: 300_000, hasKey: true },
    ],
    [
      'a million anonymous callers from one /64',
      (n: number) => `2001:db8:1:1:${hex(n >> 16)}:${hex(n & 0xffff)}::1`,
      { calls: 1_000_000, hasKey: false },
    ],
  ])('does not grow with %s', async (_, addressOf, { calls, hasKey }) => {
    const { authenticator, policy } = await openIdentity('{ trustedProxies: [127.0.0.1], anonymous: free }')
    const socket = await openSocket()
    const { view } = policy
    const seed = randomKey()
    const subjects = new Set<string>()
    const ask = (from: number, to: number) => {
      for (let n = from; n < to; n += 1) {
        const headers = { 'x-forwarded-for': addressOf(n), ...(hasKey ? { 'x-api-key': `${seed}${n}` } : {}) }
        const caller = authenticator.authenticate(view.policy, { headers, url: '/', socket })
        if ('kind' in caller && caller.kind === 'known') subjects.add(caller.subject.id)
      }
    }
    ask(0, 100_000) // what is kept at most is full by now
    const before = heapBytes()
    ask(100_000, calls)
    expect(heapBytes() - before).toBeLessThan(4_000_000)
    expect([...subjects]).toEqual(hasKey ? [] : ['ip:2001:db8:1:1::/64'])
  })
})

it('callers from any address of one /64 are one count in Redis, and get what one caller gets', async () => {
  const { redis, statuses } = await openProxy('{ trustedProxies: [127.0.0.1], anonymous: free }')
  const before = await redis.dbsize()
  const asks = Array.from({ length: 2_000 }, (_, n) => {
    const address = `2001:db8:1:1:${randomBytes(2).toString('hex')}::${n.toString(16)}`
    return ['127.0.0.1', { 'x-forwarded-for': address }] as const
  })
  const counts = await statuses(asks)
  // 10 a minute; the minute may end in between.
  expect(counts[404]).toBeGreaterThanOrEqual(10)
  expect(counts[404]).toBeLessThanOrEqual(20)
  expect((counts[404] ?? 0) + (counts[429] ?? 0)).toBe(2_000)
  expect(await redis.dbsize()).toBe(before + 1)
})
