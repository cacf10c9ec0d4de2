import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { openMemoryIngress } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createAddressCardinalityLimit } from '@weir/redis/layers/address-cardinality-limit.ts'
import { createLayers } from '@weir/redis/layers/all-layers.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forTest } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

/** A stopped process answers when it runs again; the client gives up a silent connection after a second. */
const recovery = { timeout: 15_000, interval: 20 }

type Around = (store: LimitStore) => LimitStore
const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 25 }

async function open(identity: string, around: Around) {
  const server = await forTest(startServer(redisServer))
  const redis = await openLimiterRedis(server.address)
  const name = `late-${randomUUID()}`
  const policyText = `{ version: 1, identity: ${identity}, plans: { free: { limits: [${name}] } }, subjects: { acme: { plan: free } }, limits: { ${name}: { algorithm: fixed_window, size: 50, period: month, onUnavailable: deny } } }`
  const store = new RedisLimitStore({ redis, ...common })
  const apps = await openMemoryIngress(policyText, { store: around(store), clock: systemClock })
  const { api, proxy, decisions: log } = apps
  onTestFinished(async () => {
    await api.close()
    await proxy.close()
    store.close()
  })
  return { server, log, api, proxy }
}

test('a charge of somebody who was turned away is given back when its late reply comes, and the record is corrected', async () => {
  const { server, log, api } = await open('{}', (store) => createLayers(store, { ...common, processes: () => 1 }).store)
  const check = async (peek: boolean) => {
    const headers = { authorization: 'Bearer root', 'content-type': 'application/json' }
    const payload = { subject: 'acme', cost: 7, peek }
    return (await api.inject({ method: 'POST', url: '/v1/check', headers, payload })).json()
  }
  await expect.poll(async () => (await check(true)).reason, recovery).toBe('ok')
  process.kill(server.pid(), 'SIGSTOP')
  const refused = await check(false)
  process.kill(server.pid(), 'SIGCONT')
  expect(refused).toMatchObject({ allowed: false, reason: 'unavailable' })
  await expect.poll(() => log.records.length, recovery).toBe(2)
  const [denial, correction] = log.records
  expect(denial).toMatchObject({ id: refused.id, charged: 'unknown', cost: 7, outcome: 'deny' })
  expect(correction).toMatchObject({
    corrects: refused.id,
    adjustment: 0,
    charged: 'no',
    cost: 0,
    count: 0,
    subject: 'acme',
    limits: [],
  })
  expect(correction?.id).not.toBe(refused.id)
  await expect.poll(async () => (await check(true)).limits[0]?.used, recovery).toBe(0)
})

test('so is one of an anonymous address that was counted together with others', async () => {
  const identity = '{ anonymous: free, trustedProxies: [127.0.0.1/32] }'
  const { server, log, proxy } = await open(identity, (store) =>
    createAddressCardinalityLimit(store, { newPerSecondMax: 1, monotonicMs: () => 0 }),
  )
  const ask = async (from: string) =>
    (await proxy.inject({ url: '/', headers: { 'x-forwarded-for': from } })).statusCode
  // Admitted: the policy has no upstream.
  await expect.poll(() => ask('192.0.2.1'), recovery).toBe(404)
  const before = log.records.length
  process.kill(server.pid(), 'SIGSTOP')
  const status = await ask('192.0.2.2')
  process.kill(server.pid(), 'SIGCONT')
  expect(status).toBe(503)
  await expect.poll(() => log.records.length, recovery).toBe(before + 2)
  const [denial, correction] = log.records.slice(before)
  expect(denial).toMatchObject({ subject: 'ip:192.0.2.2', charged: 'unknown', outcome: 'deny' })
  expect(correction).toMatchObject({ corrects: denial?.id, charged: 'no', subject: 'ip:192.0.2.2' })
})
