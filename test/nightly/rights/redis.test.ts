import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { connectLimiter, connectRedis } from '@weir/redis/connect.ts'
import { lackingOf, redisProblem } from '@weir/redis/connection-state.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { clusterRights, type RedisUse, redisRights, rightsOf, sentinelRights } from '@weir/redis/redis-rights.ts'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { untilDecides } from '../../support/open-topology.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { workOf } from '../../support/redis/user-work.ts'
import { startCluster } from '../../support/servers/redis-cluster.ts'
import { startSentinels } from '../../support/servers/redis-sentinel.ts'
import { startTlsRedis } from '../../support/servers/redis-tls.ts'

const page = await readFile(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8')
const documented = new Map(
  [...page.matchAll(/^ACL SETUSER weir-(\w+) on >PASSWORD resetchannels (.*)$/gm)].map(([, use, rule]) => [use, rule]),
)

const server = await forFile(startTlsRedis(['maxmemory-policy allkeys-lru'], 'yes'))
const admin = connectRedis(`rediss://127.0.0.1:${server.port}`, {
  role: 'queue',
  onError: () => undefined,
  tls: server.files,
})
afterAll(() => void admin.disconnect())

const setUser = (name: string, rule: string) => admin.acl('SETUSER', name, 'reset', 'on', '>p@ss', ...rule.split(' '))

async function open(use: RedisUse) {
  const name = `weir-${use}`
  await setUser(name, documented.get(use) ?? '')
  const told: string[] = []
  const redis = connectRedis(
    { variable: 'WEIR_REDIS_URL', file: undefined, text: `rediss://${name}:p%40ss@127.0.0.1:${server.port}` },
    {
      role: use === 'claims' || use === 'queue' ? use : 'limiter',
      use,
      tls: server.files,
      onError: ({ message }) => void told.push(message),
    },
  )
  onTestFinished(() => redis.disconnect())
  await vi.waitFor(() => expect(redis.status).toBe('ready'))
  return { name, redis, told }
}

test('The documented rights are those that readiness asks Redis for', () => {
  expect(Object.fromEntries(documented)).toEqual(redisRights)
  expect(page).toContain(`\`${clusterRights}\``)
  const ofQueue = rightsOf('queue', 'cluster').split(' ')
  const more = ofQueue.filter((right) => !`${redisRights.queue} ${clusterRights}`.split(' ').includes(right))
  expect(more).toEqual(['~{weir-deliveries}:*', '+readonly', '+readwrite'])
  for (const right of more) expect(page).toContain(right)
})

test.each(Object.keys(redisRights) as RedisUse[])(
  'The documented rights of %s are enough, and without any one of them its work fails, and the right is named',
  { timeout: 60_000 },
  async (use) => {
    const { name, redis, told } = await open(use)
    await workOf[use](redis, admin)
    expect(await redisProblem(redis)).toBeUndefined()
    expect(told).toEqual([])
    const rule = documented.get(use) ?? ''
    const useless: string[] = []
    const unnamed: string[] = []
    for (const right of rule.split(' ').filter((one) => one !== '-@all')) {
      await setUser(
        name,
        rule
          .split(' ')
          .filter((one) => one !== right)
          .join(' '),
      )
      await workOf[use](redis, admin).then(
        () => useless.push(right),
        () => undefined,
      )
      const lacking = await lackingOf(redis)
      if (lacking !== `Redis: the user of WEIR_REDIS_URL lacks ${right}`) unnamed.push(`${right}: ${lacking}`)
      await setUser(name, rule)
    }
    expect({ useless, unnamed }).toEqual({ useless: [], unnamed: [] })
    await workOf[use](redis, admin)
    expect(await lackingOf(redis)).toBeUndefined()
  },
)

test('On a Cluster the two rights more are needed, and are named', async () => {
  const cluster = await forTest(startCluster())
  const rule = `${documented.get('ingress')} ${clusterRights}`
  const setRule = (text: string) =>
    Promise.all(cluster.nodes.map(({ redis }) => redis.acl('SETUSER', 'weir', 'reset', 'on', '>p', ...text.split(' '))))
  await setRule(rule)
  const open = () => {
    const source = cluster.url.replace('://', '://weir:p@')
    const redis = connectLimiter(source, { use: 'ingress', onError: () => undefined })
    const store = new RedisLimitStore({
      redis,
      clock: systemClock,
      periodBoundaries: createBoundaryCache(),
      deadlineMs: 1_000,
    })
    onTestFinished(() => {
      store.close()
      redis.disconnect()
    })
    return store
  }
  const store = open()
  await untilDecides(store)
  expect(await store.checkHealth()).toEqual({ problem: undefined, warning: undefined })

  // A slot on the move: a key that is not there yet is asked for where it is to be.
  const request = buildLimitRequest({ scope: buildScope({ subject: 'on-the-move' }) })
  const slot = keySlot('weir:1:{on-the-move}:minute')
  const from = await cluster.holderOf(slot)
  const [to] = cluster.nodes.filter(({ id }) => id !== from.id)
  await to?.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id)
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to?.id ?? '')
  await setRule(rule.replace(' +asking', ''))
  expect(await store.decide(request)).toMatchObject({ reason: 'unavailable' })
  await vi.waitFor(async () => expect((await store.checkHealth()).warning).toContain('lacks +asking'), 5_000)
  await setRule(rule)
  expect(await store.decide(request)).toMatchObject({ reason: 'ok' })

  await setRule(rule.replace(' +cluster|slots', ''))
  const blind = open()
  await vi.waitFor(async () => expect((await blind.checkHealth()).problem).toContain('lacks +cluster|slots'), 5_000)
  expect(await blind.decide(request)).toMatchObject({ reason: 'unavailable' })
  await setRule(rule)
  await untilDecides(blind)
})

test('Sentinels are asked with the documented rights, and each that is missing is named', async () => {
  const setup = await forTest(startSentinels())
  const ports = [...setup.url.matchAll(/:(\d+)/g)].map(([, port]) => Number(port))
  const admins = ports.map((port) =>
    connectRedis(`redis://127.0.0.1:${port}`, { role: 'queue', onError: () => undefined }),
  )
  onTestFinished(() => {
    for (const one of admins) one.disconnect()
  })
  const setRule = (rule: string) =>
    Promise.all(
      admins.map((one) => one.acl('SETUSER', 'default', 'reset', 'on', 'nopass', '+acl', ...rule.split(' '), '+acl')),
    )
  expect(page).toContain(`\`${sentinelRights}\``)
  await setRule(sentinelRights)
  const told: string[] = []
  const redis = connectRedis(setup.url, {
    role: 'claims',
    use: 'claims',
    onError: ({ message }) => void told.push(message),
  })
  onTestFinished(() => redis.disconnect())
  await vi.waitFor(() => expect(redis.status).toBe('ready'), 5_000)
  const named = async () => (await redisProblem(redis)) ?? (await lackingOf(redis))
  for (const right of sentinelRights.split(' ').filter((one) => /^[+&]/.test(one))) {
    expect(await named()).toBeUndefined()
    await setRule(sentinelRights.replace(` ${right}`, ''))
    told.length = 0
    redis.disconnect(true)
    await vi.waitFor(() => expect(told.join()).toContain(`their user default lacks ${right} (NOPERM`), 5_000)
    await vi.waitFor(async () => expect(await named()).toContain(right.slice(1)), 5_000)
    await setRule(sentinelRights)
    // Sentinels are subscribed to with each connection, and not again while it lasts.
    const isAllowed = async () => {
      const problem = await named()
      if (problem !== undefined && redis.status === 'ready') redis.disconnect(true)
      expect(problem).toBeUndefined()
    }
    await vi.waitFor(isAllowed, { timeout: 15_000, interval: 200 })
  }
})
