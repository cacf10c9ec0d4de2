import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GuideServers, openGuideServers, untilWindowHasRoom } from '../../support/migrations/open-servers.ts'
import { playTraffic, statusesOf } from '../../support/migrations/play-traffic.ts'
import { startGuideProgram } from '../../support/migrations/start-program.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'

let servers: GuideServers
beforeAll(async () => {
  servers = await openGuideServers()
}, 180_000)
afterAll(() => servers?.close())

/** How many requests had which reason in which mode, by the records. */
function countsOf(records: readonly ReadRecord[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { value } of records) {
    const parsed = parseDecision(value ?? Buffer.alloc(0))
    if (parsed.kind !== 'decision') continue
    const { outcome, mode, reason, denied_by: deniedBy, count } = parsed.decision
    const what = [outcome, mode, reason, deniedBy].join(' ').trimEnd()
    counts[what] = (counts[what] ?? 0) + count
  }
  return counts
}

test('side by side, the library decides as ever and the records say that Weir would have refused as many', async () => {
  const weir = await servers.startWeir({ policy: 'express-rate-limit/shadow.yaml' })
  const environment = { WEIR_URL: weir.api, WEIR_KEY: 'token-of-the-shop' }
  const both = await startGuideProgram('express-rate-limit/both.mjs', environment)
  await untilWindowHasRoom(60 * 60_000)
  const seen = await playTraffic(
    [both],
    [
      { what: 'one address', times: 33, sent: { path: '/api/things', from: '127.0.0.21' } },
      { what: 'another', times: 14, sent: { path: '/api/things', from: '127.0.0.22' } },
    ],
  )
  expect(statusesOf(seen)).toEqual({ 'one address': { 200: 20, 429: 13 }, another: { 200: 14 } })

  const expected = { 'allow enforce ok': 34, 'allow shadow limit hour': 13 }
  const isAll = (records: readonly ReadRecord[]) =>
    Object.values(countsOf(records)).reduce((sum, count) => sum + count, 0) >= 47
  const records = await readTopic(kafkaOptions(servers.kafka), topics.decisions, isAll)
  expect(countsOf(records)).toEqual(expected)
})
