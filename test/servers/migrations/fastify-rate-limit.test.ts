import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { type GuideServers, openGuideServers, untilWindowHasRoom } from '../../support/migrations/open-servers.ts'
import { playTraffic, type Step, statusesOf } from '../../support/migrations/play-traffic.ts'
import { startGuideProgram } from '../../support/migrations/start-program.ts'

const guide = 'fastify-rate-limit'
const hourMs = 60 * 60_000
/** The headers of draft 6 are those that `enableDraftSpec` has. */
const dialect = { WEIR_RATELIMIT_HEADERS: 'draft6' }

let servers: GuideServers
beforeAll(async () => {
  servers = await openGuideServers()
}, 180_000)
afterAll(() => servers?.close())

const get = (path: string, key: string) => ({ path, headers: { 'x-api-key': key } })

const traffic: readonly Step[] = [
  { what: 'silver, one by one', times: 7, sent: get('/things', 'key-of-silver'), inTurn: true },
  { what: 'silver, a burst', times: 30, sent: get('/things', 'key-of-silver') },
  { what: 'gold, a burst', times: 55, sent: get('/things', 'key-of-gold') },
  { what: 'silver searches', times: 9, sent: get('/search', 'key-of-silver') },
  { what: 'gold searches', times: 6, sent: get('/search', 'key-of-gold'), inTurn: true },
  { what: 'monitor', times: 70, sent: get('/things', 'key-of-monitor') },
  { what: 'monitor searches', times: 10, sent: get('/search', 'key-of-monitor') },
  { what: 'health of a client beyond its limit', times: 10, sent: get('/health', 'key-of-silver') },
]
const expected = {
  'silver, one by one': { 200: 7 },
  'silver, a burst': { 200: 13, 429: 17 },
  'gold, a burst': { 200: 40, 429: 15 },
  'silver searches': { 200: 5, 429: 4 },
  'gold searches': { 200: 5, 429: 1 },
  monitor: { 200: 70 },
  'monitor searches': { 200: 10 },
  'health of a client beyond its limit': { 200: 10 },
}

const start = (program: 'before' | 'after', environment: Readonly<Record<string, string>>) =>
  startGuideProgram(`${guide}/${program}.mjs`, environment)

test('the guide from @fastify/rate-limit: before and after answer the same traffic over two processes with the same counts', async () => {
  const redis = { REDIS_URL: await servers.startRedis() }
  const before = await playTraffic([await start('before', redis), await start('before', redis)], traffic)
  expect(statusesOf(before)).toEqual(expected)
  expect(before[0]?.remaining).toEqual([19, 18, 17, 16, 15, 14, 13])

  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml`, environment: dialect })
  const token = { WEIR_URL: weir.api, WEIR_KEY: 'token-of-the-app' }
  const after = [await start('after', token), await start('after', token)]
  await untilWindowHasRoom(hourMs)
  expect(await playTraffic(after, traffic)).toEqual(before)
})

test('a key that nobody has is refused, and a path that no route has is counted, where the plugin did neither', async () => {
  const steps = [
    { what: 'a key that nobody has', times: 3, sent: get('/things', 'made-up') },
    { what: 'a path that no route has', times: 23, sent: get('/nothing', 'key-of-silver') },
  ]
  const before = await start('before', { REDIS_URL: await servers.startRedis() })
  expect(statusesOf(await playTraffic([before], steps))).toEqual({
    'a key that nobody has': { 200: 3 },
    'a path that no route has': { 404: 23 },
  })
  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml` })
  const after = await start('after', { WEIR_URL: weir.api, WEIR_KEY: 'token-of-the-app' })
  await untilWindowHasRoom(hourMs)
  expect(statusesOf(await playTraffic([after], steps))).toEqual({
    'a key that nobody has': { 401: 3 },
    'a path that no route has': { 404: 20, 429: 3 },
  })
})

test('the ingress as a proxy needs no plugin for the same counts', async () => {
  const upstream = await startPlainUpstream()
  onTestFinished(() => upstream.close())
  const replace: [string, string] = ['http://127.0.0.1:3000', upstream.url]
  const weir = await servers.startWeir({ policy: `${guide}/proxy.yaml`, replace, environment: dialect })
  await untilWindowHasRoom(hourMs)
  expect(statusesOf(await playTraffic([weir.proxy], traffic))).toEqual(expected)
})
