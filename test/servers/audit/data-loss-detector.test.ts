import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { DataLossDetector } from '@weir/redis/data-loss-detector.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { mastersOf, serverFinder } from '@weir/redis/limit-connection.ts'
import { createQuotaCounts, type QuotaServers } from '@weir/redis/quota-counts.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type ClusterSetup, startCluster } from '../../support/servers/redis-cluster.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'

const deadlineMs = 15_000

/** Connected as a service is, until the test ends. */
async function connect(url: string): Promise<QuotaServers> {
  const connection = connectLimiter(url, { onError: () => undefined })
  onTestFinished(() => connection.disconnect())
  const isReady = () => connection.status === 'ready' && mastersOf(connection).every(({ status }) => status === 'ready')
  expect(await waitUntil(isReady, { deadlineMs })).toBe(true)
  return { serverOf: serverFinder(connection), all: () => mastersOf(connection) }
}

/** A watcher that writes down what it is told. */
function watch(servers: QuotaServers, isAble = () => true, restoreAfterMs?: readonly number[]) {
  const seen = { losses: [] as string[], restorings: 0, faults: [] as string[] }
  const watcher = new DataLossDetector({
    servers,
    ...(restoreAfterMs === undefined ? {} : { restoreAfterMs }),
    async restore() {
      if (!isAble()) throw new Error('ClickHouse is away')
      seen.restorings += 1
    },
    onLoss: (why) => seen.losses.push(why),
    onFault: ({ message }) => seen.faults.push(message),
  })
  onTestFinished(() => watcher.stop())
  return seen
}

const until = (holds: () => boolean) => waitUntil(holds, { deadlineMs })

describe('a process that watches a Redis', () => {
  let server: RunningServer
  beforeAll(async () => {
    server = await startServer(redisServer)
  })
  afterAll(() => server?.close())

  it('learns once of a loss and whether the server was empty from the first, and of several only one restores', async () => {
    const servers = await connect(server.address)
    const all = [1, 2, 3].map(() => watch(servers))
    const losses = () => all.flatMap((one) => one.losses)
    const restored = () => all.filter(({ restorings }) => restorings > 0)
    expect(await until(() => restored().length > 0)).toBe(true)
    // Twice more, once each, by any of them.
    for (const times of [2, 3]) {
      await servers.all()[0]?.flushall()
      expect(await until(() => losses().length === times)).toBe(true)
    }
    expect(losses()).toEqual(['new', 'empty', 'empty'])
  })

  it('tries until it can be restored, and says once why it cannot', async () => {
    const servers = await connect(server.address)
    await servers.all()[0]?.flushall()
    let isAble = false
    const seen = watch(servers, () => isAble)
    expect(await until(() => seen.faults.length > 0)).toBe(true)
    expect([seen.losses, seen.restorings]).toEqual([['new'], 0])
    isAble = true
    expect(await until(() => seen.restorings > 0)).toBe(true)
    expect(seen.faults).toEqual(['ClickHouse is away'])
  })

  it('learns of a server that was started again: its last writes may be gone', async () => {
    const servers = await connect(server.address)
    const [redis] = servers.all()
    await redis?.flushall()
    const runId = /^run_id:(\w+)/m.exec((await redis?.info('server')) ?? '')?.[1] ?? ''
    await redis?.set('weir:1:{_here-0}', runId, 'PX', 3_600_000)
    const seen = watch(servers)
    await server.kill('SIGTERM')
    await server.restart()
    expect(await until(() => seen.restorings > 0)).toBe(true)
    expect(seen.losses).toEqual(['restarted'])
  })
})

describe('a Cluster', () => {
  let cluster: ClusterSetup
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.close())

  const daily = buildLimit({ name: 'daily', span: { kind: 'period', unit: 'day' } })
  const endMs = Date.now() + 3_600_000
  const floors = Array.from({ length: 60 }, (_, at) => {
    const scope = { subject: `s${at}`, keyId: '', route: '', method: '' }
    return { limit: 'daily', ...scope, endMs, units: at + 1, key: limitKey(daily, { ...scope, ip: '' }) }
  })

  it('has its counts raised on every master, each where it belongs', async () => {
    const servers = await connect(cluster.url)
    const counts = createQuotaCounts(servers)
    const raised = await counts.raise(floors)
    expect(raised.map(({ outcome, now }) => [outcome, now])).toEqual(floors.map(({ units }) => ['raised', units]))
    expect((await counts.look(floors)).map(({ before }) => before)).toEqual(floors.map(({ units }) => units))
    expect(await counts.find(new Set(['daily']))).toEqual(floors.map(({ key }) => key).sort())
  })

  it('of which one master lost its data is noticed, though the others have theirs', async () => {
    const servers = await connect(cluster.url)
    const seen = watch(servers)
    expect(await until(() => seen.restorings > 0)).toBe(true)
    const holder = await cluster.holderOf(keySlot(floors[0]?.key ?? ''))
    const before = seen.losses.length
    await holder.redis.flushall()
    expect(await until(() => seen.losses.length > before)).toBe(true)
    expect(seen.losses.slice(before)).toEqual(['empty'])
  })

  it('of which one master hangs when all are restored is watched again once it goes on', async () => {
    const servers = await connect(cluster.url)
    await Promise.all(servers.all().map((master) => master.flushall()))
    const [hung] = cluster.nodes
    let isHung = false
    const stop = () => {
      if (!isHung) hung?.signal('SIGSTOP')
      isHung = true
      return true
    }
    const seen = watch(servers, stop, [2_000])
    onTestFinished(() => hung?.signal('SIGCONT'))
    expect(await until(() => seen.restorings > 0 && seen.faults.length > 0)).toBe(true)
    hung?.signal('SIGCONT')
    const canaries = Array.from({ length: 32 }, (_, at) => `weir:1:{_here-${at}}`)
    const areWatched = async () => {
      const found = await Promise.all(canaries.map((key) => servers.serverOf(key).get(key)))
      const values = found.filter((value) => value !== null)
      return values.length >= 3 && !values.some((value) => value.startsWith('restoring'))
    }
    expect(await waitUntil(() => areWatched().catch(() => false), { deadlineMs })).toBe(true)
  })
})
