import { randomUUID } from 'node:crypto'
import { createDisabledEndpoints } from '@weir/alerting/deliver/disabled-endpoints.ts'
import { createDispatcher } from '@weir/alerting/deliver/dispatcher.ts'
import { type ClaimedKey, createClaimStore } from '@weir/alerting/raise/claim-store.ts'
import { createRoundLock } from '@weir/alerting/watch/rounds.ts'
import { createEvaluationLock } from '@weir/alerting/watch/watch-rates.ts'
import { blockCountKey } from '@weir/core/alerts/claim.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { Target } from '@weir/policy/policy.ts'
import { connectClaims, connectQueue } from '@weir/redis/connect.ts'
import { redisProblem } from '@weir/redis/connection-state.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { problemOf } from '@weir/redis/limit-connection.ts'
import { rightsOf } from '@weir/redis/redis-rights.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { startCluster } from '../../support/servers/redis-cluster.ts'

const cluster = await forFile(startCluster({ replicas: 1 }))

const until = { timeout: 20_000, interval: 20 }
const closeMs = 10_000
const log = createLogger('test', 'silent')
const queueSlot = keySlot('{weir-deliveries}')

/** Nodes of a Cluster do not share their users: each gets one with the documented rights. Returns its address. */
async function addressFor(use: 'claims' | 'queue'): Promise<string> {
  const rights = rightsOf(use, 'cluster').split(' ')
  await Promise.all(cluster.nodes.map(({ redis }) => redis.acl('SETUSER', use, 'reset', 'on', '>p', ...rights)))
  return cluster.url.replace('://', `://${use}:p@`)
}

async function openClaims() {
  const told: string[] = []
  const redis = connectClaims(await addressFor('claims'), {
    use: 'claims',
    onError: ({ message }) => void told.push(message),
  })
  onTestFinished(() => redis.disconnect())
  await vi.waitFor(async () => expect(await problemOf(redis)).toBeUndefined(), until)
  return { redis, told, store: createClaimStore(redis) }
}

const build = (count: number, key: (subject: string) => string = (subject) => `quota_alert:{${subject}}:day`) =>
  Array.from({ length: count }, (): ClaimedKey => {
    const subject = randomUUID()
    return { key: key(subject), lifetimeMs: 60_000, occurrenceId: 'first' }
  })

const statesOf = (found: readonly { readonly state: string }[]) => [...new Set(found.map(({ state }) => state))]

test('Claims of one batch on all masters are acquired once among all processes, keep what the first said until they are done, and always expire', async () => {
  const { store, told: errors } = await openClaims()
  const claims = build(300)
  const holders = new Set(await Promise.all(claims.map(({ key }) => cluster.holderOf(keySlot(key)))))
  expect(holders.size).toBe(3)
  const found = await Promise.all(Array.from({ length: 8 }, () => store.claim(claims)))
  claims.forEach((_, at) => {
    expect(found.filter((states) => states[at]?.state === 'acquired').length).toBe(1)
  })
  const done = claims.filter((_, at) => at % 3 === 0)
  await store.finish(done)
  const after = await store.claim(claims.map((claim) => ({ ...claim, occurrenceId: 'second' })))
  const told = after.map(({ state, occurrenceId }) => (state === 'pending' ? occurrenceId : state))
  expect(told).toEqual(claims.map((_, at) => (at % 3 === 0 ? 'done' : 'first')))
  const ttls = claims.map(async ({ key }) => (await cluster.holderOf(keySlot(key))).redis.pttl(key))
  for (const ttl of await Promise.all(ttls)) expect([ttl > 30_000, ttl <= 60_000]).toEqual([true, true])
  expect(errors).toEqual([])
})

test('Counted blocks, turns and what was evaluated are kept on a Cluster with the documented rights', async () => {
  const { redis, store, told } = await openClaims()
  const [subject, limit, nowMs] = [randomUUID(), 'tries', Date.now()]
  const hour = Math.floor(nowMs / 3_600_000) * 3_600_000
  const blocks = build(102, () => `quota_alert:{${subject}}:tries:${randomUUID()}`).map((claim) => ({
    ...claim,
    counted: { subject, limit, nowMs },
  }))
  const found = await store.claim(blocks)
  expect(found.map(({ state }) => state)).toEqual([...Array(100).fill('acquired'), 'counted', 'counted'])
  await store.keepFurther(hour, new Map([['one', { subject, limit, size: 5, decisionId: 'd' }]]))
  expect(await store.readFurther(hour)).toEqual([{ subject, limit, size: 5, decisionId: 'd', more: 2 }])
  expect(keySlot(blockCountKey(subject, limit, hour))).toBe(keySlot(`quota_alert:{${subject}}`))
  const hasTurn = [createRoundLock(redis, 'weir:1:watches:resolved'), createRoundLock(redis, 'weir:1:watches:resolved')]
  expect(await Promise.all(hasTurn.map((take) => take()))).toEqual([true, false])
  const lock = createEvaluationLock(redis)
  expect(await lock.take()).toEqual(new Map())
  await lock.storeEvaluated('denials', 5)
  expect(told).toEqual([])
})

test('While a slot moves, a batch fails as a whole, and is made where the slot is afterwards', async () => {
  const { store } = await openClaims()
  const claims = build(60)
  await store.claim(claims.slice(0, 30))
  const slot = keySlot(claims[0]?.key ?? '')
  const from = await cluster.holderOf(slot)
  const to = cluster.nodes.slice(0, 3).find(({ id }) => id !== from.id)
  if (to === undefined) throw new Error('there is nowhere to move the slot')
  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id)
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id)
  // All that the slot holds: of random keys two may share it.
  for (const key of await from.redis.cluster('GETKEYSINSLOT', slot, claims.length)) {
    await from.redis.migrate('127.0.0.1', to.port, key, 0, 5_000)
  }
  await expect(store.claim(claims)).rejects.toThrow('ASK')
  for (const node of [to, from]) await node.redis.cluster('SETSLOT', slot, 'NODE', to.id)
  const found = await vi.waitFor(() => store.claim(claims), until)
  // What the failed batch acquired of the second half is pending: the next claimant goes on from there.
  expect(found.slice(0, 30).map(({ state }) => state)).toEqual(Array(30).fill('pending'))
  expect(statesOf(found)).toEqual(['pending'])
  expect(await cluster.holderOf(slot)).toBe(to)
})

async function openQueue() {
  const told: string[] = []
  const redis = connectQueue(await addressFor('queue'), {
    use: 'queue',
    onError: ({ message }) => void told.push(message),
  })
  const delivered: string[] = []
  await vi.waitFor(async () => expect(await redisProblem(redis)).toBeUndefined(), until)
  const dispatcher = createDispatcher({
    redis,
    clock: systemClock,
    log,
    async deliver({ alert, attempts, ...job }) {
      if (alert.subject === 'later' && attempts === 0) {
        return { kind: 'later', job: { ...job, alert, attempts: 1 }, atMs: Date.now() + 50 }
      }
      delivered.push(alert.id)
      return { kind: 'over' }
    },
  })
  onTestFinished(async () => {
    // Just after a failover BullMQ may wait for the end of a connection that has none any more.
    await withTimeout(dispatcher.close(), closeMs, undefined)
    redis.disconnect()
  })
  return { redis, told, delivered, dispatcher }
}

const jobsOf = (count: number, subject = 'ops') =>
  Array.from({ length: count }, () => {
    const about = { id: randomUUID(), subject, time: new Date().toISOString() }
    const alert = { ...about, type: 'weir.endpoint.test', data: { endpoint: 'ops' } } as const
    return { alert, endpoint: 'ops', requestedMs: 0, attempts: 0, dueMs: 0, giveUpMs: Date.now() + 60_000 }
  })
const idsOf = (jobs: ReturnType<typeof jobsOf>) => jobs.map(({ alert }) => alert.id).sort()

test('Deliveries are queued, put off and made once on a Cluster, with the documented rights, all in one slot', async () => {
  const { redis, told, delivered, dispatcher } = await openQueue()
  const jobs = [...jobsOf(50), ...jobsOf(10, 'later')]
  await dispatcher.enqueue(jobs)
  await dispatcher.enqueue(jobs)
  expect(await dispatcher.missing(jobs)).toEqual([])
  await vi.waitFor(() => expect(delivered.length).toBe(60), until)
  expect([...delivered].sort()).toEqual(idsOf(jobs))
  const endpoint = { name: 'ops', type: 'webhook', url: 'https://ops.example/' } as Target
  const endpoints = createDisabledEndpoints({ redis, publish: async () => undefined, clock: systemClock, log })
  await endpoints.disable(endpoint, 'gone')
  expect(await endpoints.reasonFor(endpoint)).toContain('gone')
  await endpoints.enable(endpoint)
  const holder = await cluster.holderOf(queueSlot)
  const keysOf = async ({ redis: node }: (typeof cluster.nodes)[number]) => node.keys('*weir-deliveries*')
  const others = cluster.nodes.slice(0, 3).filter(({ id }) => id !== holder.id)
  expect((await keysOf(holder)).length).toBeGreaterThanOrEqual(60)
  expect(await Promise.all(others.map(keysOf))).toEqual([[], []])
  expect(told).toEqual([])
})

test('A connection of the queue that ends is made again by the nodes it knew, where the one that was named hangs', async () => {
  const holder = await cluster.holderOf(queueSlot)
  const url = (await addressFor('queue')).replace(/\d+$/, String(holder.port))
  const redis = connectQueue(url, { use: 'queue', onError: () => undefined })
  onTestFinished(() => redis.disconnect())
  await vi.waitFor(async () => expect(await redisProblem(redis)).toBeUndefined(), until)
  holder.signal('SIGSTOP')
  onTestFinished(() => holder.signal('SIGCONT'))
  redis.disconnect(true)
  expect(await withTimeout(redis.exists('{weir-deliveries}:none'), until.timeout, 'no answer')).toBe(0)
})

test.each(['SIGSTOP', 'SIGKILL'] as const)(
  'The master of the queue ends by %s: claims and deliveries go on at its replica, and none is lost',
  { timeout: 90_000 },
  async (signal) => {
    const { store } = await openClaims()
    const { delivered, dispatcher } = await openQueue()
    await dispatcher.enqueue(jobsOf(20))
    await vi.waitFor(() => expect(delivered.length).toBe(20), until)
    const before = await cluster.holderOf(queueSlot)
    const others = cluster.nodes.filter(({ id }) => id !== before.id)
    const jobs = jobsOf(200)
    const claims = build(100)
    before.signal(signal)
    try {
      const queued = dispatcher.enqueue(jobs)
      await vi.waitFor(async () => expect(statesOf(await store.claim(claims))).toEqual(['pending']), 30_000)
      await queued
      await vi.waitFor(() => expect(new Set(delivered).size).toBe(220), 30_000)
      expect(idsOf(jobs).filter((id) => !delivered.includes(id))).toEqual([])
      const lines = String(await others[0]?.redis.cluster('NODES')).split('\n')
      expect(lines.find((line) => line.startsWith(before.id))).toMatch(/fail|slave/)
    } finally {
      before.signal('SIGCONT')
    }
  },
)
