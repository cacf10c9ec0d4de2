import { randomUUID } from 'node:crypto'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { expect, test, vi } from 'vitest'
import { openTopology } from '../../support/open-topology.ts'
import { forFile } from '../../support/opened.ts'
import { runLoad } from '../../support/run-load.ts'
import { startCluster } from '../../support/servers/redis-cluster.ts'

/** A slot on the move answers TRYAGAIN for some milliseconds, and two cores are few. */
const deadlineMs = 1_000
const size = 3_000
const day = { kind: 'window', ms: 86_400_000 } as const

const cluster = await forFile(startCluster())

const isAdmitted = ({ decision }: { decision: { allowed: boolean } }) => decision.allowed

test('our slots are those of Redis', async () => {
  for (const key of ['weir:1:{acme}:minute', 'weir:1:{ip%3A192%2E0%2E2%2E1}:x:blocked', 'foo', '{}x', 'a{b']) {
    expect(keySlot(key)).toBe(Number(await cluster.nodes[0]?.redis.cluster('KEYSLOT', key)))
  }
})

test('a slot with live counts moves under load: every request is decided, and the limits hold exactly', async () => {
  const store = await openTopology(cluster.url, deadlineMs)
  const scope = buildScope({ subject: `moved-${randomUUID()}` })
  const limits = [buildLimit({ name: 'a', size, span: day }), buildLimit({ name: 'b', size: 2 * size, span: day })]
  const keys = limits.map((limit) => limitKey(limit, scope))
  const slot = keySlot(keys[0] ?? '')
  const load = runLoad(store, 16, buildLimitRequest({ scope, limits }))
  const untilMore = async () => {
    const count = load.answers.length
    await vi.waitFor(() => expect(load.answers.length).toBeGreaterThan(count + 100), { timeout: 10_000, interval: 5 })
  }
  await untilMore()
  const from = await cluster.holderOf(slot)
  const to = cluster.nodes.find((node) => node !== from)
  if (to === undefined) throw new Error('there is nowhere to move the slot')
  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id)
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id)
  await untilMore()
  for (const key of keys) await from.redis.migrate('127.0.0.1', to.port, key, 0, 5_000)
  await untilMore() // by ASK
  for (const node of [to, from]) await node.redis.cluster('SETSLOT', slot, 'NODE', to.id)
  await vi.waitFor(() => expect(load.answers.at(-1)?.decision.reason).toBe('limit'), { timeout: 15_000 })
  await load.stop()
  expect(load.answers.filter(({ decision }) => decision.reason === 'unavailable')).toEqual([])
  expect(load.answers.filter(isAdmitted).length).toBe(size)
  expect(await cluster.holderOf(slot)).toBe(to)
})

test('limits in several slots: refused by one, charged to none; a refund gives back to all', async () => {
  const store = await openTopology(cluster.url, deadlineMs)
  const scope = buildScope({ subject: `across-${randomUUID()}`, ip: `198.51.100.${Date.now() % 250}` })
  const own = buildLimit({ name: 'own', size: 50, span: day })
  const perIp = buildLimit({
    name: `ip-${randomUUID()}`,
    size: 3,
    by: [{ kind: 'ip' }],
    span: day,
    algorithm: 'sliding_log',
  })
  const all = buildLimit({ name: `all-${randomUUID()}`, size: 100, by: [{ kind: 'global' }], span: day })
  const request = buildLimitRequest({ scope, limits: [own, perIp, all] })
  const used = async () => (await store.decide({ ...request, peek: true })).limits.map((state) => state.used)

  const first = await store.decide(request)
  expect(first).toMatchObject({ allowed: true, charged: 'yes', limits: [{ used: 1 }, { used: 1 }, { used: 1 }] })
  const raced = await Promise.all(Array.from({ length: 8 }, () => store.decide(request)))
  expect(raced.filter(({ allowed }) => allowed).length).toBe(2)
  expect(raced.filter(({ allowed }) => !allowed).map(({ deniedBy }) => deniedBy)).toEqual(Array(6).fill(perIp.name))
  expect(await used()).toEqual([3, 3, 3])
  expect(await store.refund(request, first)).toBe(true)
  expect(await used()).toEqual([2, 2, 2])
})

test('an idempotency key over several slots charges once', async () => {
  const store = await openTopology(cluster.url, deadlineMs)
  const scope = buildScope({ subject: `once-${randomUUID()}` })
  const limits = [
    buildLimit({ name: 'own', span: day }),
    buildLimit({ name: `ip-${randomUUID()}`, by: [{ kind: 'ip' }], span: day }),
  ]
  const request = buildLimitRequest({ scope, limits })
  for (const some of [limits, limits.slice(1)]) {
    const once = { ...request, limits: some, idempotency: { key: randomUUID(), id: 'first' } }
    expect(await store.decide(once)).toMatchObject({ charged: 'yes', repeats: '' })
    expect(await store.decide(once)).toMatchObject({ allowed: true, charged: 'no', repeats: 'first' })
    const key = randomUUID()
    const print = (fingerprint: string) => ({ ...once, idempotency: { ...once.idempotency, key, fingerprint } })
    expect(await store.decide(print('abcdefghijkl'))).toMatchObject({ charged: 'yes' })
    expect(await store.decide(print('ABCDEFGHIJKL'))).toMatchObject({ charged: 'no', isOtherQuestion: true })
  }
  const seen = await store.decide({ ...request, peek: true })
  expect(seen.limits.map(({ used }) => used)).toEqual([2, 4])
})

test('an idempotency key is its subject’s own, however long the subject is and whatever spaces are in both', async () => {
  const store = await openTopology(cluster.url, deadlineMs)
  const limits = [buildLimit({ name: `all-${randomUUID()}`, by: [{ kind: 'global' }], span: day })]
  const ask = (subject: string, key: string, own = limits) =>
    store.decide({
      ...buildLimitRequest({ scope: buildScope({ subject }), limits: own }),
      idempotency: { key, id: 'x' },
    })
  expect(await ask('a', 'b c')).toMatchObject({ charged: 'yes', repeats: '' })
  expect(await ask('a b', 'c')).toMatchObject({ charged: 'yes', repeats: '' })
  expect(await ask('a b', 'c')).toMatchObject({ charged: 'no', repeats: 'x' })
  const [long, perSubject] = [`${randomUUID()} `.repeat(6).trim(), [buildLimit({ name: 'own', span: day })]]
  expect(await ask(long, 'c', perSubject)).toMatchObject({ charged: 'yes', repeats: '' })
  expect(await ask(long, 'c', perSubject)).toMatchObject({ charged: 'no', repeats: 'x' })
})

test('a master that hangs takes only its own slots with it', async () => {
  const store = await openTopology(cluster.url, 100)
  const requests = Array.from({ length: 60 }, (_, at) =>
    buildLimitRequest({ scope: buildScope({ subject: `hung-${at}` }) }),
  )
  const hung = cluster.nodes[2]
  hung?.signal('SIGSTOP')
  try {
    await Promise.all(requests.map((request) => store.decide(request)))
    const startedMs = performance.now()
    const again = await Promise.all(requests.map((request) => store.decide(request)))
    expect(performance.now() - startedMs).toBeLessThan(90)
    const reasons = new Set(again.map(({ reason }) => reason))
    expect([...reasons].sort()).toEqual(['ok', 'unavailable'])
    expect(store.serversDown).toBe(1)
  } finally {
    hung?.signal('SIGCONT')
  }
})

test('a late charge of one of several slots is refunded, and the denied decision reports it', async () => {
  const store = await openTopology(cluster.url, 400)
  const all = buildLimit({ name: `all-${randomUUID()}`, size: 100, by: [{ kind: 'global' }], span: day })
  const own = buildLimit({ name: 'own', size: 50, span: day, onUnavailable: 'deny' })
  const masterOf = (subject: string, limit = own) => cluster.holderOf(keySlot(limitKey(limit, buildScope({ subject }))))
  let subject = randomUUID()
  while ((await masterOf(subject)) === (await masterOf(subject, all))) subject = randomUUID()
  const request = buildLimitRequest({ scope: buildScope({ subject }), limits: [own, all] })
  const home = await masterOf(subject)
  home.signal('SIGSTOP')
  const decision = await store.decide(request).finally(() => home.signal('SIGCONT'))
  expect(decision).toMatchObject({ allowed: false, reason: 'unavailable', deniedBy: 'own', charged: 'unknown' })
  expect(decision.lateRefund).toBeDefined()
  await decision.lateRefund
  expect(store.counters).toMatchObject({ lateRefunds: 1, lateRefundsLost: 0 })
  const seen = await store.decide({ ...request, peek: true })
  expect(seen.limits.map(({ used }) => used)).toEqual([0, 0])
})

test('a limit that degrades names itself and refuses nobody, also where it is counted in another slot', async () => {
  const store = await openTopology(cluster.url, deadlineMs)
  const scope = buildScope({ subject: `soft-${randomUUID()}`, ip: `198.51.100.${Date.now() % 250}` })
  const own = buildLimit({ name: 'own', size: 50, span: day })
  const onExceed = { kind: 'degrade' } as const
  const soft = buildLimit({ name: `soft-${randomUUID()}`, size: 1, span: day, by: [{ kind: 'ip' }], onExceed })
  const request = buildLimitRequest({ scope, limits: [own, soft] })
  expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'ok', deniedBy: '', charged: 'yes' })
  const degraded = await store.decide(request)
  expect(degraded).toMatchObject({ allowed: true, reason: 'limit', deniedBy: soft.name, charged: 'yes' })
  expect(await store.refund(request, degraded)).toBe(true)
  expect(await store.decide({ ...request, peek: true })).toMatchObject({ limits: [{ used: 1 }, { used: 1 }] })
})
