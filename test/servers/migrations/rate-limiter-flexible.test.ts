import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GuideServers, openGuideServers, untilWindowHasRoom } from '../../support/migrations/open-servers.ts'
import { playTraffic, type Step, statusesOf } from '../../support/migrations/play-traffic.ts'
import { startGuideProgram } from '../../support/migrations/start-program.ts'

const guide = 'rate-limiter-flexible'
const dayMs = 24 * 60 * 60_000

let servers: GuideServers
beforeAll(async () => {
  servers = await openGuideServers()
}, 180_000)
afterAll(() => servers?.close())

const answer = (user: string, guessed: number, spent = guessed) => ({
  headers: { 'x-user': user, 'x-guessed': String(guessed), 'x-spent': String(spent) },
})

const traffic: readonly Step[] = [
  { what: 'ann, 300 points each', times: 3, sent: answer('ann', 300), inTurn: true },
  { what: 'ann, 200 points, which is too much and blocks', times: 1, sent: answer('ann', 200) },
  { what: 'ann, 50 points, which would fit', times: 4, sent: answer('ann', 50) },
  { what: 'bob, a burst of 25 points each', times: 60, sent: answer('bob', 25) },
  { what: 'carl, 400 guessed and 100 spent', times: 7, sent: answer('carl', 400, 100), inTurn: true },
  { what: 'carl, the 300 points left', times: 1, sent: answer('carl', 300) },
  { what: 'carl, one point more', times: 3, sent: answer('carl', 1) },
]
const expected = {
  'ann, 300 points each': { 200: 3 },
  'ann, 200 points, which is too much and blocks': { 429: 1 },
  'ann, 50 points, which would fit': { 429: 4 },
  'bob, a burst of 25 points each': { 200: 40, 429: 20 },
  'carl, 400 guessed and 100 spent': { 200: 7 },
  'carl, the 300 points left': { 200: 1 },
  'carl, one point more': { 429: 3 },
}

const start = (program: 'before' | 'after', environment: Readonly<Record<string, string>>) =>
  startGuideProgram(`${guide}/${program}.mjs`, environment)

test('the guide from rate-limiter-flexible: before and after answer the same traffic over two processes with the same counts', async () => {
  const redis = { REDIS_URL: await servers.startRedis() }
  const before = await playTraffic([await start('before', redis), await start('before', redis)], traffic)
  expect(statusesOf(before)).toEqual(expected)
  expect(before[0]?.remaining).toEqual([700, 400, 100])

  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml` })
  const own = { WEIR_URL: weir.api, WEIR_KEY: 'token-of-answers' }
  const after = [await start('after', own), await start('after', own)]
  await untilWindowHasRoom(dayMs)
  expect(await playTraffic(after, traffic)).toEqual(before)
})

test('a refusal uses nothing up in Weir, and in the library what was left', async () => {
  const steps = [
    { what: 'more than ever fits', times: 1, sent: answer('dora', 1_001) },
    { what: 'what fits', times: 1, sent: answer('dora', 1) },
  ]
  const before = await start('before', { REDIS_URL: await servers.startRedis() })
  expect(statusesOf(await playTraffic([before], steps))).toEqual({
    'more than ever fits': { 429: 1 },
    'what fits': { 429: 1 },
  })
  const weir = await servers.startWeir({ policy: `${guide}/weir.yaml` })
  const after = await start('after', { WEIR_URL: weir.api, WEIR_KEY: 'token-of-answers' })
  expect(statusesOf(await playTraffic([after], steps))).toEqual({
    'more than ever fits': { 429: 1 },
    'what fits': { 200: 1 },
  })
})
