import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type GuideServers, openGuideServers, untilWindowHasRoom } from '../../support/migrations/open-servers.ts'
import { playTraffic, type Step, statusesOf } from '../../support/migrations/play-traffic.ts'
import { startGuideProgram } from '../../support/migrations/start-program.ts'
import { readMetric } from '../../support/read-metric.ts'
import type { RunningIngress } from '../../support/start-ingress.ts'

const guide = 'express-rate-limit'
const hourMs = 60 * 60_000

let servers: GuideServers
beforeAll(async () => {
  servers = await openGuideServers()
}, 180_000)
afterAll(() => servers?.close())

const get = (path: string, from: string) => ({ path, from })
const logIn = (user: string, password: string) => ({
  ...{ method: 'POST', path: '/login', headers: { 'content-type': 'application/json' } },
  body: Buffer.from(JSON.stringify({ user, password })),
})

/** What both the middleware and the proxy see: the address, the path and how it went. */
const byAddress: readonly Step[] = [
  { what: 'a burst of 30 of one address', times: 30, sent: get('/api/things', '127.0.0.11') },
  { what: 'health of that address', times: 25, sent: get('/api/health', '127.0.0.11') },
  { what: 'another address', times: 12, sent: get('/api/things', '127.0.0.12'), inTurn: true },
  { what: 'a path in capitals', times: 2, sent: get('/API/things', '127.0.0.11') },
  { what: 'failures of that address', times: 5, sent: get('/api/broken', '127.0.0.12'), inTurn: true },
  { what: 'the rest of that address', times: 12, sent: get('/api/things', '127.0.0.12'), inTurn: true },
  { what: 'failures beyond its limit', times: 3, sent: get('/api/broken', '127.0.0.12') },
]

const byUser: readonly Step[] = [
  { what: 'ann logs in', times: 8, sent: logIn('ann', 'right'), inTurn: true },
  { what: 'ann mistypes', times: 3, sent: logIn('ann', 'wrong'), inTurn: true },
  { what: 'ann logs in again', times: 2, sent: logIn('ann', 'right'), inTurn: true },
  { what: 'somebody guesses the password of bob', times: 12, sent: logIn('bob', 'wrong') },
  { what: 'bob knows it', times: 1, sent: logIn('bob', 'right') },
]

const expectedByAddress = {
  'a burst of 30 of one address': { 200: 20, 429: 10 },
  'health of that address': { 200: 25 },
  'another address': { 200: 12 },
  'a path in capitals': { 429: 2 },
  'failures of that address': { 500: 5 },
  'the rest of that address': { 200: 8, 429: 4 },
  'failures beyond its limit': { 429: 3 },
}
const expected = {
  ...expectedByAddress,
  'ann logs in': { 200: 8 },
  'ann mistypes': { 401: 3 },
  'ann logs in again': { 200: 2 },
  'somebody guesses the password of bob': { 401: 5, 429: 7 },
  'bob knows it': { 429: 1 },
}

const startBefore = () => startGuideProgram(`${guide}/before.mjs`, {})

async function startAfter(weir: RunningIngress) {
  return startGuideProgram(`${guide}/after.mjs`, { WEIR_URL: weir.api, WEIR_KEY: 'token-of-the-shop' })
}

/** An Express app without any limiter, as far as its statuses go. */
async function startUnlimited() {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/api/broken' ? 500 : 200).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('the guide from express-rate-limit: before and after answer the same traffic with the same counts', async () => {
  const traffic = [...byAddress, ...byUser]
  const before = await playTraffic([await startBefore()], traffic)
  expect(statusesOf(before)).toEqual(expected)

  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml` })
  const after = await startAfter(weir)
  await untilWindowHasRoom(hourMs)
  expect(await playTraffic([after], traffic)).toEqual(before)
})

test('two processes of the guide count each by itself before, and together after', async () => {
  const traffic = [{ what: 'a burst of 60 over both', times: 60, sent: get('/api/things', '127.0.0.13') }]
  const before = await playTraffic([await startBefore(), await startBefore()], traffic)
  expect(statusesOf(before)).toEqual({ 'a burst of 60 over both': { 200: 40, 429: 20 } })

  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml` })
  const processes = [await startAfter(weir), await startAfter(weir)]
  await untilWindowHasRoom(hourMs)
  const [after] = await playTraffic(processes, traffic)
  expect(after?.statuses).toEqual({ 200: 20, 429: 40 })
  expect(after?.remaining).toEqual(Array.from({ length: 20 }, (_, at) => 19 - at))
})

test('the ingress as a proxy needs no middleware for the same counts by address', async () => {
  const replace: [string, string] = ['http://127.0.0.1:3000', await startUnlimited()]
  const weir = await servers.startWeir({ policy: `${guide}/proxy.yaml`, replace })
  await untilWindowHasRoom(hourMs)
  const failures = 1 + byAddress.findIndex(({ what }) => what === 'failures of that address')
  const first = await playTraffic([weir.proxy], byAddress.slice(0, failures))
  // The proxy gives back after it has answered.
  const isGivenBack = async () => (await readMetric(weir.ops, 'weir_corrections_total')) === 5
  expect(await waitUntil(isGivenBack, { deadlineMs: 10_000 })).toBe(true)
  const rest = await playTraffic([weir.proxy], byAddress.slice(failures))
  expect(statusesOf([...first, ...rest])).toEqual(expectedByAddress)
})
