import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { connectLimiter, connectRedis } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { Redis } from 'ioredis'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { untilDecides } from '../../support/open-topology.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { startTlsRedis } from '../../support/servers/redis-tls.ts'

const server = await forFile(
  startTlsRedis(['user default on nopass ~* &* +@all', 'user weir on >old ~* &* +@all'], 'yes'),
)
const dir = await mkdtemp(join(tmpdir(), 'weir-test-rotation-'))
const admin = connectRedis(`rediss://127.0.0.1:${server.port}`, {
  role: 'queue',
  onError: () => undefined,
  tls: server.files,
})
afterAll(async () => {
  admin.disconnect()
  await rm(dir, { recursive: true })
})

const urlOf = (password: string, port = server.port) => `rediss://weir:${password}@127.0.0.1:${port}`

/** A connection whose address is in a file, and its errors. */
async function open(role: 'claims' | 'queue' | 'limiter') {
  const file = join(dir, `url-${role}`)
  await writeFile(file, urlOf('old'))
  await admin.acl('SETUSER', 'weir', 'resetpass', '>old')
  const errors: string[] = []
  const onError = (error: Error) => void errors.push(error.message)
  const options = { role, onError, tls: server.files }
  const source = { variable: 'WEIR_REDIS_URL_FILE', file, text: urlOf('old') }
  const redis = role === 'limiter' ? connectLimiter(source, options) : connectRedis(source, options)
  if (!(redis instanceof Redis)) throw new Error('not a Cluster')
  onTestFinished(() => redis.disconnect())
  await untilReady(redis)
  return { file, errors, redis }
}

const untilReady = (redis: Redis) =>
  vi.waitFor(() => expect(redis.status).toBe('ready'), { timeout: 15_000, interval: 20 })

/** Redis ends the connections of a user that is deleted. */
const replaceUser = async (password: string) => {
  await admin.acl('DELUSER', 'weir')
  await admin.acl('SETUSER', 'weir', 'on', `>${password}`, '~*', '&*', '+@all')
}

test.each(['limiter', 'claims', 'queue'] as const)(
  'A password replaced while a connection of role %s lasts is used at its next connection, that of a duplicate too',
  async (role) => {
    const { file, errors, redis } = await open(role)
    const duplicate = redis.duplicate()
    duplicate.on('error', () => undefined)
    onTestFinished(() => duplicate.disconnect())
    await untilReady(duplicate)
    await replaceUser('new')
    await vi.waitFor(() => expect(errors.join()).toContain('WRONGPASS'), { timeout: 15_000 })
    await writeFile(file, `${urlOf('new')}\n`)
    await Promise.all([untilReady(redis), untilReady(duplicate)])
    expect(await redis.acl('WHOAMI')).toBe('weir')
  },
)

test('A Redis that refuses the password decides nothing, and its limits follow onUnavailable until the file is right', async () => {
  const { file, errors, redis } = await open('limiter')
  const store = await forTest(
    new RedisLimitStore({ redis, clock: systemClock, periodBoundaries: createBoundaryCache() }),
  )
  await replaceUser('new')
  await vi.waitFor(() => expect(errors.join()).toContain('WRONGPASS'), { timeout: 15_000 })
  expect(await store.decide(buildLimitRequest())).toMatchObject({ allowed: true, reason: 'unavailable', charged: 'no' })
  expect((await store.checkHealth()).problem).toMatch(/refuses the user weir \(WRONGPASS.*\): see WEIR_REDIS_URL_FILE$/)
  await writeFile(file, urlOf('new'))
  await untilDecides(store)
})

test('An address that is another one, a file that is gone and certificates that do not fit change nothing but the log', async () => {
  const { file, errors, redis } = await open('claims')
  const { redisTlsCert } = server.files
  const certificate = await readFile(redisTlsCert)
  onTestFinished(() => writeFile(redisTlsCert, certificate))
  const reconnects = async (logged: string) => {
    redis.disconnect(true)
    await vi.waitFor(() => expect(errors.join()).toContain(logged), { timeout: 15_000 })
    await untilReady(redis)
  }
  await writeFile(file, urlOf('old', 1))
  await reconnects('WEIR_REDIS_URL_FILE names a different Redis than at the start: restart')
  await rm(file)
  await reconnects('WEIR_REDIS_URL_FILE names a file that cannot be read')
  await writeFile(file, urlOf('old'))
  await writeFile(redisTlsCert, 'half written')
  await reconnects('WEIR_REDIS_TLS_CERT and WEIR_REDIS_TLS_KEY cannot be used')
})
