import { createHash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { createRlsClient, type RlsRequest } from '../../support/envoy-ratelimit/rls-client.ts'
import { startEnvoyOverGrpc } from '../../support/gateways/envoy.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { type RunningIngress, startIngress } from '../../support/start-ingress.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** Redis may have counted for an earlier run. */
const subject = `grpc-${randomUUID()}`
const key = `key-of-${subject}`
const policyFile = join(tmpdir(), `weir-grpc-${process.pid}.yaml`)
const policy = {
  version: 1,
  identity: { anonymous: 'visitors' },
  plans: { free: { limits: ['daily', 'by-address'] }, visitors: { limits: ['for-visitors'] } },
  limits: {
    daily: { algorithm: 'fixed_window', period: 'day', size: 30 },
    'for-visitors': { algorithm: 'fixed_window', period: 'day', size: 20, by: ['subject', 'route'] },
    'by-address': { algorithm: 'fixed_window', period: 'day', size: 20, by: ['subject', 'ip'] },
  },
  routes: [{ match: 'POST /v1/dear', cost: 5 }],
  subjects: { [subject]: { plan: 'free', keys: [{ sha256: sha256(key), id: 'one' }] } },
}

/** Its own, because a policy in Kafka comes before the file. */
let kafka: RunningServer
let weir: RunningIngress
beforeAll(async () => {
  await writeFile(policyFile, JSON.stringify(policy))
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  weir = await startIngress({
    WEIR_POLICY_FILE: policyFile,
    WEIR_REDIS_URL: inject('redisUrl'),
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_ADMIN_TOKEN_SHA256: sha256('root'),
  })
}, 180_000)
afterAll(async () => {
  await weir?.close()
  await kafka?.close()
})

test("Envoy's filter, Envoy's own client and the entry points over HTTP share one limit, and every decision has its record", async () => {
  const upstream = await startPlainUpstream()
  onTestFinished(() => upstream.close())
  const envoy = await startEnvoyOverGrpc({ grpc: weir.grpc, upstream: upstream.url })
  onTestFinished(() => envoy.close())
  const client = await createRlsClient(weir.grpc)
  onTestFinished(() => client.close())

  const authorization = `Bearer ${key}`
  const through = (path: string, method = 'GET') => send(envoy.url, { path, method, headers: { authorization } })
  const allowed = await through('/v1/cheap?q=1')
  expect(allowed.status).toBe(200)
  expect(allowed.headers.ratelimit).toMatch(/^"daily";r=29;t=\d+, "by-address";r=19;t=\d+$/)
  const dear = await through('/v1/dear', 'POST')
  expect(dear.headers.ratelimit).toMatch(/^"daily";r=24;t=\d+, "by-address";r=14;t=\d+$/)

  const asked: RlsRequest = { domain: 'mesh', descriptors: [{ entries: [{ key: 'subject', value: subject }] }] }
  const answer = await client.shouldRateLimit({ ...asked, hits_addend: 4 })
  expect(answer).toMatchObject({ overall_code: 'OK', statuses: [{ code: 'OK', limit_remaining: 20 }] })
  const headers = { authorization: 'Bearer root', 'content-type': 'application/json' }
  const check = (cost: number) =>
    send(weir.api, { method: 'POST', path: '/v1/check', headers, body: Buffer.from(JSON.stringify({ subject, cost })) })
  expect(JSON.parse((await check(5)).body)).toMatchObject({ allowed: true, limits: [{ name: 'daily', used: 15 }] })

  const codes = await Promise.all(Array.from({ length: 20 }, () => through('/v1/cheap').then(({ status }) => status)))
  expect(codes.filter((code) => code === 200)).toHaveLength(14)
  const refused = await through('/v1/cheap')
  expect([refused.status, refused.headers['content-type']]).toEqual([429, 'application/problem+json'])
  expect(JSON.parse(refused.body)).toMatchObject({ 'violated-policies': ['by-address'] })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)

  const nobody = await send(envoy.url, { path: '/v1/dear', method: 'POST' })
  expect([nobody.status, nobody.headers.ratelimit]).toEqual([200, expect.stringMatching(/^"for-visitors";r=15;/)])

  const over = await client.shouldRateLimit({ ...asked, hits_addend: 2 })
  expect(over).toMatchObject({ overall_code: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT', limit_remaining: 1 }] })
  expect((await client.shouldRateLimit(asked)).overall_code).toBe('OK')
  expect(JSON.parse((await check(1)).body)).toMatchObject({ allowed: false, denied_by: 'daily' })

  const records = await readTopic(kafkaOptions(kafka.address), 'weir.decisions.v1', (all) => countOf(all) >= 28)
  expect([countOf(records, 'allow'), countOf(records, 'deny')]).toEqual([19, 9])
})

/** Decisions of the subject, some of them in one record. */
function countOf(records: readonly ReadRecord[], outcome = ''): number {
  const decided = records.map(({ value }) => JSON.parse(`${value}`)).filter((one) => one.subject === subject)
  return decided.reduce((sum, one) => (outcome === '' || one.outcome === outcome ? sum + one.count : sum), 0)
}
