import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { algorithms } from '@weir/core/limits/limit.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import type { RedisTlsFiles } from '@weir/redis/redis-variables.ts'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { buildLimit, buildLimitRequest } from '../../support/builders/limit.ts'
import { openTopology } from '../../support/open-topology.ts'
import { startTlsRedis, type TlsServer } from '../../support/servers/redis-tls.ts'

const deadlineMs = 1_000
const operating = join(import.meta.dirname, '../../../docs/operating.md')

let server: TlsServer
let tls: RedisTlsFiles
beforeAll(async () => {
  const rights = /^ACL SETUSER weir on >PASSWORD (.*)$/m.exec(await readFile(operating, 'utf8'))?.[1]
  server = await startTlsRedis(['user default off', `user weir on >p%40ss ${rights}`])
  tls = { redisTlsCa: server.caFile, redisTlsCert: '', redisTlsKey: '' }
  return () => server.close()
})

const urlOf = (password: string) => `rediss://weir:${encodeURIComponent(password)}@127.0.0.1:${server.port}`

test('a user with the documented rights alone decides by every algorithm over TLS, and readiness has nothing to say', async () => {
  const store = await openTopology(urlOf('p%40ss'), deadlineMs, { tls })
  for (const algorithm of algorithms) {
    const limit = buildLimit({ name: `limit-${algorithm}`, algorithm, size: 3, blockMs: 60_000 })
    const idempotency = { key: `key-${algorithm}`, id: algorithm }
    const request = buildLimitRequest({ limits: [limit] })
    const first = await store.decide({ ...request, idempotency })
    expect(first).toMatchObject({ allowed: true, charged: 'yes' })
    expect(await store.decide({ ...request, idempotency })).toMatchObject({ repeats: algorithm })
    expect(await store.refund(request, first)).toBe(true)
    const rest = await Promise.all(Array.from({ length: 4 }, () => store.decide(request)))
    expect(rest.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
  }
  expect(store.counters.scriptErrors).toEqual({})
  expect(await store.checkHealth()).toEqual({ problem: undefined, warning: undefined })
})

test.each([
  ['a certificate of an authority that is not named', () => ({ url: urlOf('p%40ss') }), /self-signed|unable to/],
  ['a wrong password', () => ({ url: urlOf('wrong'), tls }), /WRONGPASS/],
])('%s is refused by name', async (_what, options, message) => {
  const { url, ...rest } = { tls: undefined, ...options() }
  const error = await new Promise<Error>((resolve) => {
    const redis = connectRedis(url, { role: 'limiter', onError: resolve, ...rest })
    onTestFinished(() => redis.disconnect())
  })
  expect(error.message).toMatch(message)
})
