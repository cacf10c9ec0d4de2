import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import type { RedisTlsFiles } from '@weir/redis/redis-url.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openTopology } from '../../support/open-topology.ts'
import { forFile } from '../../support/opened.ts'
import { startTlsRedis } from '../../support/servers/redis-tls.ts'

const user = 'user weir on >p@ss ~* &* +@all'
const server = await forFile(startTlsRedis(['bind 127.0.0.1 127.0.0.2', 'user default off', user], 'yes'))
const other = await forFile(startTlsRedis())

const urlOf = (password = 'p@ss', host = `127.0.0.1:${server.port}`) =>
  `rediss://weir:${encodeURIComponent(password)}@${host}`

test('A Redis that asks for a client certificate and a password decides, and readiness has nothing to say', async () => {
  const store = await openTopology(urlOf(), 1_000, { tls: server.files })
  expect(await store.decide(buildLimitRequest())).toMatchObject({ allowed: true, reason: 'ok' })
  expect(await store.checkHealth()).toEqual({ problem: undefined, warning: undefined })
})

const none = { redisTlsCert: '', redisTlsKey: '' }
const anothers = () => ({ redisTlsCert: other.files.redisTlsCert, redisTlsKey: other.files.redisTlsKey })

test.each<[string, () => { url?: string; files?: Partial<RedisTlsFiles> }, RegExp]>([
  [
    'an unreachable server',
    () => ({ url: urlOf('x', '127.0.0.1:1') }),
    /cannot be reached \(.*\): see WEIR_REDIS_URL_FILE$/,
  ],
  [
    'an unknown authority',
    () => ({ files: { redisTlsCa: other.caFile } }),
    /not from a CA that WEIR_REDIS_TLS_CA holds \(self/,
  ],
  [
    'an authority that Node does not trust',
    () => ({ files: { redisTlsCa: '' } }),
    /not from a CA that WEIR_REDIS_TLS_CA/,
  ],
  [
    'another host name',
    () => ({ url: urlOf('x', `127.0.0.2:${server.port}`) }),
    /not for the host name in WEIR_REDIS_URL/,
  ],
  ['no client certificate', () => ({ files: none }), /(?:requires|wants) a client certificate.*WEIR_REDIS_TLS_CERT/],
  ["another authority's client certificate", () => ({ files: anothers() }), /WEIR_REDIS_TLS_CERT/],
  [
    'plain text on a TLS port',
    () => ({ url: urlOf().replace('rediss', 'redis') }),
    /must begin with rediss instead of redis$/,
  ],
  [
    'TLS on a port of plain text',
    () => ({ url: urlOf('x', new URL(inject('redisUrl')).host) }),
    /must begin with redis if it/,
  ],
  [
    'a wrong password',
    () => ({ url: urlOf('wrong') }),
    /refuses the user weir \(WRONGPASS .*\): see WEIR_REDIS_URL_FILE$/,
  ],
  [
    'no password',
    () => ({ url: urlOf().replace(/weir.*@/, '') }),
    /refuses the user default \(NOAUTH.*\): see WEIR_REDIS_URL_/,
  ],
])('%s is named with the variable to look at, and never the password', async (_what, options, message) => {
  const { url: text = urlOf(), files } = options()
  const error = await new Promise<Error>((resolve) => {
    const source = { variable: 'WEIR_REDIS_URL_FILE', file: undefined, text }
    const redis = connectRedis(source, { role: 'limiter', onError: resolve, tls: { ...server.files, ...files } })
    onTestFinished(() => redis.disconnect())
  })
  expect(error.message).toMatch(message)
  expect(error.message).not.toMatch(/p(?:@|%40)ss/)
})

test('A server with several names is asked for the one in the address', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<string>()
  const listener = createServer({ SNICallback: (name) => resolve(name) }).listen(0, '127.0.0.1')
  const { port } = (await once(listener, 'listening').then(() => listener.address())) as AddressInfo
  const redis = connectRedis(`rediss://localhost:${port}`, { role: 'claims', onError: () => undefined })
  onTestFinished(() => void listener.close())
  onTestFinished(() => redis.disconnect())
  expect(await asked).toBe('localhost')
})
