import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { type PlainUpstream, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { type RunningIngress, startIngress } from '../../support/start-ingress.ts'
import { runWeir } from '../../support/weir-up.ts'

const policy = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 100000, window: 1m } }
subjects: { acme: { plan: free } }
identity: { trustedProxies: [127.0.0.1/32] }
`

let kafka: RunningServer
let admin: RunningConsole
let weir: RunningIngress
let upstream: PlainUpstream
const gateways = new Map<string, Gateway>()

beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const servers = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_REDIS_URL: inject('redisUrl') }
  admin = await startConsole({ ...servers, WEIR_CLICKHOUSE_URL: inject('clickhouseUrl') })
  expect((await admin.ask('PUT /v1/policy', policy)).status).toBe(200)
  weir = await startIngress({ ...servers, WEIR_POLICY_FILE: '/nowhere/weir.yaml' })
  upstream = await startPlainUpstream()
  const behind = { weirApi: weir.api, upstream: upstream.url }
  for (const [name, start] of Object.entries({ nginx: startNginx, caddy: startCaddy, haproxy: startHaproxy })) {
    gateways.set(name, await start(behind))
  }
}, 180_000)
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
  await weir?.close()
  await admin?.close()
  await upstream?.close()
  await kafka?.close()
})

/** Asks through every gateway until each has answered so; how long that took, by gateway. */
async function msUntil(key: string, status: number): Promise<ReadonlyMap<string, number>> {
  const sinceMs = performance.now()
  const took = new Map<string, number>()
  const look = async ([name, { url }]: readonly [string, Gateway]) => {
    const isSeen = async () => (await send(url, { path: '/hello', headers: { 'x-api-key': key } })).status === status
    const seen = await waitUntil(isSeen, { deadlineMs: 10_000, everyMs: 5 })
    expect([name, status, seen]).toEqual([name, status, true])
    took.set(name, performance.now() - sinceMs)
  }
  await Promise.all([...gateways].map(look))
  return took
}

test('a key that the command line revoked is refused through nginx, Caddy and HAProxy within a second', async () => {
  const made = await runWeir(['keys', 'create', 'acme', '--id', 'gone'], admin.environment)
  const key = made.stdout.trim()
  await msUntil(key, 200)
  expect((await runWeir(['keys', 'revoke', 'gone'], admin.environment)).code).toBe(0)
  const took = await msUntil(key, 401)
  const figures = [...took].map(([name, ms]) => `${name} after ${ms.toFixed(0)} ms`).join(', ')
  process.stdout.write(`a revoked key is refused: ${figures}\n`)
  expect(Math.max(...took.values())).toBeLessThan(1_000)
})
