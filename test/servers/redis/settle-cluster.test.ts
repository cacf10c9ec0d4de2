import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { settlementKey } from '@weir/redis/keys.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { parseMarker } from '@weir/redis/settlement-marker.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { untilDecides } from '../../support/open-topology.ts'
import { forFile } from '../../support/opened.ts'
import { startCluster } from '../../support/servers/redis-cluster.ts'

const cluster = await forFile(startCluster())

const deadlineMs = 5_000
const day = { kind: 'window', ms: 86_400_000 } as const

async function open(markersMax = 1_000) {
  const redis = connectLimiter(cluster.url, { onError: () => undefined })
  const store = new RedisLimitStore({
    redis,
    clock: systemClock,
    periodBoundaries: createBoundaryCache(),
    deadlineMs,
    markersMax,
  })
  onTestFinished(() => {
    store.close()
    redis.disconnect()
  })
  await untilDecides(store)
  const subject = `settled-${randomUUID()}`
  const scope = buildScope({ subject, ip: `198.51.100.${Date.now() % 250}` })
  const own = buildLimit({ name: 'own', size: 1_000, span: day })
  const perIp = buildLimit({
    name: `ip-${randomUUID()}`,
    size: 500,
    by: [{ kind: 'ip' }],
    span: day,
    algorithm: 'sliding_log',
  })
  const all = buildLimit({ name: `all-${randomUUID()}`, size: 1_000, by: [{ kind: 'global' }], span: day })
  const settlements = new RedisSettlements({ redis, owner: 'one', answerMs: deadlineMs })
  const ask = (limits: readonly (typeof own)[], cost: number) => ({
    ...buildLimitRequest({ scope, limits, cost }),
    reservation: { id: uuidv7(Date.now()), ttlMs: 600_000, context: 'x' },
  })
  const used = async (request: ReturnType<typeof ask>) =>
    (await store.decide({ ...request, cost: 0, peek: true })).limits.map((state) => state.used)
  return { redis, store, subject, own, perIp, all, settlements, ask, used }
}

test('a decision over several slots is settled in each of them, once, however often it is repeated', async () => {
  const { store, subject, own, perIp, all, settlements, ask, used } = await open()
  const request = ask([own, perIp, all], 40)
  expect(await store.decide(request)).toMatchObject({ allowed: true, charged: 'yes' })
  const settlement = { subject, id: request.reservation.id, cost: 90 }
  const first = await settlements.settle(settlement)
  expect(first).toMatchObject({ kind: 'settled', chargedCost: 40, isRecordPending: true })
  expect(first.kind === 'settled' && first.limits.map((state) => state.used)).toEqual([90, 90, 90])
  expect(await Promise.all([settlements.settle(settlement), settlements.settle(settlement)])).toEqual([first, first])
  expect(await settlements.settle({ ...settlement, cost: 1 })).toEqual({ kind: 'conflict', cost: 90 })
  expect(await used(request)).toEqual([90, 90, 90])
})

test('what a subject settles itself leaves the counts of limits in other slots, which others share', async () => {
  const { store, subject, own, perIp, all, settlements, ask, used } = await open()
  const plain = ask([own, perIp, all], 40)
  const request = { ...plain, reservation: { ...plain.reservation, isOwn: true } }
  await store.decide(request)
  const settle = (cost: number) => settlements.settle({ subject, id: request.reservation.id, cost, isOwn: true })
  expect(await settle(41)).toEqual({ kind: 'too-much', settleMax: 40 })
  expect(await settle(10)).toMatchObject({ kind: 'settled', limits: [{ name: 'own', used: 10 }] })
  expect(await settle(10)).toMatchObject({ kind: 'settled', limits: [{ name: 'own', used: 10 }] })
  expect(await used(request)).toEqual([10, 40, 40])
})

test("limits of other slots alone: the subject's slot still knows of the decision", async () => {
  const { store, subject, perIp, all, settlements, ask, used } = await open()
  const request = ask([perIp, all], 30)
  expect(await store.decide(request)).toMatchObject({
    allowed: true,
    charged: 'yes',
    limits: [{ used: 30 }, { used: 30 }],
  })
  const settled = await settlements.settle({ subject, id: request.reservation.id, cost: 10 })
  expect(settled).toMatchObject({ kind: 'settled', limits: [{ used: 10 }, { used: 10 }] })
  expect(await used(request)).toEqual([10, 10])
})

test('a decision whose later slot refuses is not charged, in no slot, and cannot be settled', async () => {
  const { store, subject, perIp, settlements, ask, used } = await open()
  const narrow = buildLimit({ name: `all-${randomUUID()}`, size: 20, by: [{ kind: 'global' }], span: day })
  const requests = Array.from({ length: 6 }, () => ask([perIp, narrow], 15))
  const decisions = await Promise.all(requests.map((request) => store.decide(request)))
  expect(decisions.map(({ charged }) => charged).toSorted()).toEqual(['no', 'no', 'no', 'no', 'no', 'yes'])
  const settle = ({ reservation }: ReturnType<typeof ask>) =>
    settlements.settle({ subject, id: reservation.id, cost: 1 })
  const settled = await Promise.all(requests.map(settle))
  expect(settled.map(({ kind }) => kind === 'settled')).toEqual(decisions.map(({ charged }) => charged === 'yes'))
  expect(await used(ask([perIp, narrow], 0))).toEqual([1, 1])
})

test('a settlement that ended after the first slot is completed by a repeat', async () => {
  const { redis, store, subject, own, perIp, settlements, ask, used } = await open()
  const request = ask([own, perIp], 40)
  await store.decide(request)
  const { id } = request.reservation
  const home = settlementKey({ subject }, id)
  const marker = parseMarker((await nodeOf(home).getBuffer(home)) ?? Buffer.alloc(0))
  expect(marker?.text.beside).toHaveLength(1)
  // No master of the other slot is known for a moment, as when it is gone.
  const slot = keySlot(marker?.text.beside?.[0] ?? '')
  if (!('serverOf' in redis)) throw new Error('this is no Cluster')
  const { serverOf } = redis
  const outage = vi.spyOn(redis, 'serverOf')
  outage.mockImplementation((asked) => (asked === slot ? undefined : serverOf.call(redis, asked)))
  expect(await settlements.settle({ subject, id, cost: 10 })).toEqual({ kind: 'unavailable' })
  outage.mockRestore()
  expect(await used(request)).toEqual([10, 40])
  expect(await settlements.settle({ subject, id, cost: 10 })).toMatchObject({
    kind: 'settled',
    isRecordPending: true,
    limits: [{ used: 10 }, { used: 10 }],
  })
  expect(await used(request)).toEqual([10, 10])

  function nodeOf(key: string) {
    if (!('serverOf' in redis)) throw new Error('this is no Cluster')
    const server = redis.serverOf(keySlot(key))
    if (server === undefined) throw new Error('nobody holds the slot')
    return server
  }
})

test('a charge over several slots that was undone leaves nothing to settle', async () => {
  const { store, subject, own, perIp, settlements, ask, used } = await open()
  const request = ask([own, perIp], 40)
  const decision = await store.decide(request)
  expect(await store.refund(request, decision)).toBe(true)
  expect(await settlements.settle({ subject, id: request.reservation.id, cost: 10 })).toEqual({ kind: 'unknown' })
  expect(await used(request)).toEqual([0, 0])
})

test('the markers of a subject are bounded over all slots, and one that is refused leaves nothing in any of them', async () => {
  const { redis, store, subject, own, perIp, all, ask, used } = await open(4)
  const request = () => {
    const { reservation, ...rest } = ask([own, perIp], 1)
    return { ...rest, reservation, idempotency: { key: reservation.id, id: reservation.id } }
  }
  const requests = Array.from({ length: 4 }, request)
  const decisions = []
  for (const one of requests) decisions.push(await store.decide(one))
  const crowded = { allowed: false, reason: 'limit', deniedBy: '_markers', charged: 'no' }
  expect(decisions).toMatchObject([{ allowed: true }, { allowed: true }, crowded, crowded])
  expect(await used(requests[0] ?? request())).toEqual([2, 2])
  const masters = 'masters' in redis ? redis.masters : []
  const keys = (await Promise.all(masters.map((master) => master.keys('*')))).flat()
  const kept = requests.map(({ reservation }) => keys.filter((key) => key.endsWith(reservation.id)).length)
  expect(kept).toEqual([2, 2, 0, 0])

  // Without a limit by subject the markers are in the slot that all share, and every subject's are counted by
  // themselves.
  const once = (who: string) => {
    const plain = buildLimitRequest({ scope: buildScope({ subject: who }), limits: [all] })
    return store.decide({ ...plain, idempotency: { key: randomUUID(), id: 'first' } })
  }
  const five = await Promise.all(Array.from({ length: 5 }, () => once(subject)))
  expect(five.filter(({ allowed }) => allowed)).toHaveLength(4)
  expect(await once(`${subject}-other`)).toMatchObject({ allowed: true })
})
