import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectRedis } from '@weir/redis/connect.ts'
import { lackingOf, redisProblem } from '@weir/redis/connection-state.ts'
import { clusterRights, type RedisUse, redisRights } from '@weir/redis/redis-rights.ts'
import type { Redis } from 'ioredis'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { workOf } from '../../support/redis/user-work.ts'
import { startTlsRedis, type TlsServer } from '../../support/servers/redis-tls.ts'

const page = await readFile(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8')
const documented = new Map(
  [...page.matchAll(/^ACL SETUSER weir-(\w+) on >PASSWORD resetchannels (.*)$/gm)].map(([, use, rule]) => [use, rule]),
)

let server: TlsServer
let admin: Redis
beforeAll(async () => {
  server = await startTlsRedis(['maxmemory-policy allkeys-lru'], 'yes')
  admin = connectRedis(`rediss://127.0.0.1:${server.port}`, {
    role: 'queue',
    onError: () => undefined,
    tls: server.files,
  })
  return async () => {
    admin.disconnect()
    await server.close()
  }
})

const setUser = (name: string, rule: string) => admin.acl('SETUSER', name, 'reset', 'on', '>p@ss', ...rule.split(' '))

async function open(use: RedisUse) {
  const name = `weir-${use}`
  await setUser(name, documented.get(use) ?? '')
  const told: string[] = []
  const redis = connectRedis(
    { variable: 'WEIR_REDIS_URL', file: undefined, text: `rediss://${name}:p%40ss@127.0.0.1:${server.port}` },
    {
      ...{ role: use === 'claims' || use === 'queue' ? use : 'limiter', use, tls: server.files },
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
