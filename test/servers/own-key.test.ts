import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PlainUpstream, startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { send } from '../support/gateways/send.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../support/servers/read-topic.ts'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { type RunningIngress, startIngress } from '../support/start-ingress.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** Longer than any run, so that no count starts again in the middle. */
const week = { algorithm: 'fixed_window', window: '7d' }
const policyOf = (upstream: string) => ({
  version: 1,
  plans: { small: { limits: ['own'] }, big: { limits: ['large'] } },
  limits: {
    own: { ...week, size: 100 },
    large: { ...week, size: 100_000 },
    'per-ip': { ...week, size: 5_000, by: ['ip'] },
    shared: { ...week, size: 5_000, by: ['route'] },
  },
  routes: [
    { match: 'POST /v1/llm', cost: 50, settle: '15m', settleMax: 80 },
    { match: 'POST /v1/search', limits: ['shared'] },
    { match: 'POST /v1/address', limits: ['per-ip'] },
  ],
  upstreams: { api: { url: upstream, hosts: ['*'] } },
  subjects: Object.fromEntries(
    [
      ['llm', 'small'],
      ['gateway', 'small'],
      ['mallory', 'big'],
      ['bob', 'big'],
    ].map(([name = '', plan = '']) => [name, { plan, keys: [{ sha256: sha256(`${name}-key`) }] }]),
  ),
  tokens: { app: { sha256: sha256('app-token'), scopes: ['check'] } },
})

let kafka: RunningServer
let redis: RunningServer
let upstream: PlainUpstream
let ingress: RunningIngress
beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  redis = await startServer(redisServer)
  upstream = await startPlainUpstream()
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const policyFile = `${kafka.dir}/weir.yaml`
  await writeFile(policyFile, JSON.stringify(policyOf(upstream.url)))
  ingress = await startIngress({
    ...{ WEIR_POLICY_FILE: policyFile, WEIR_REDIS_URL: redis.address, WEIR_KAFKA_BROKERS: kafka.address },
  })
}, 180_000)
afterAll(async () => {
  await ingress?.close()
  await upstream?.close()
  await redis?.close()
  await kafka?.close()
})

async function ask(key: string, path: string, value: object) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  const answer = await send(ingress.api, { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(value)) })
  return { status: answer.status, body: JSON.parse(answer.body) }
}
const pass = (key: string, path: string, origin = ingress.proxy) =>
  send(origin, { method: 'POST', path, headers: { authorization: `Bearer ${key}` } })
const usedOf = async (name: string, peek: object) => {
  const { body } = await ask('app-token', '/v1/check', { subject: 'bob', peek: true, ...peek })
  return body.limits.find((state: { readonly name: string }) => state.name === name).used
}

test('what the proxy and /v1/authorize charged is not settled by the key that was charged: the limit ends at its size', async () => {
  const doors = [
    ['llm', '/v1/llm', ingress.proxy],
    ['gateway', '/v1/authorize/v1/llm', ingress.api],
  ] as const
  for (const [subject, path, origin] of doors) {
    const statuses: number[] = []
    for (let call = 0; call < 4; call += 1) {
      const { status, headers } = await pass(`${subject}-key`, path, origin)
      statuses.push(status)
      const refused = await ask(`${subject}-key`, '/v1/settle', { id: headers['weir-decision'], cost: 0 })
      expect([refused.status, refused.body.allowed]).toEqual([status === 200 ? 403 : 404, undefined])
      if (call > 0) continue
      const settle = (cost: number) => ask('app-token', '/v1/settle', { id: headers['weir-decision'], cost, subject })
      expect((await settle(81)).body).toMatchObject({ type: 'urn:weir:problem:settlement-too-high', cost_max: 80 })
      expect((await settle(40)).status).toBe(200)
    }
    expect([subject, statuses]).toEqual([subject, [200, 200, 429, 429]])
  }
})

test("a subject's key exhausts no limit that others share, neither by a check nor by what it settles", async () => {
  const route = 'POST /v1/search'
  for (const cost of [0, 2, 5_000]) {
    expect((await ask('mallory-key', '/v1/check', { route, cost, settle: '1m' })).status).toBe(403)
  }
  const checked = await ask('mallory-key', '/v1/check', { route, settle: '1m' })
  for (const cost of [2, 1_000_000_000]) {
    expect((await ask('mallory-key', '/v1/settle', { id: checked.body.id, cost })).status).toBe(403)
  }
  expect((await ask('mallory-key', '/v1/settle', { id: checked.body.id, cost: 0 })).body).toMatchObject({
    adjustment: -1,
  })
  expect((await pass('bob-key', '/v1/search')).status).toBe(200)
  expect(await usedOf('shared', { route })).toBe(2)
})

test("a subject's key asks from its own address alone: it neither sees nor charges the units of another", async () => {
  const route = 'POST /v1/address'
  const ip = '203.0.113.7'
  for (const body of [{ ip }, { ip, peek: true }, { ip, cost: 5_000 }, { attributes: { ip } }]) {
    expect((await ask('mallory-key', '/v1/check', { route, ...body })).status).toBe(403)
  }
  expect((await ask('mallory-key', '/v1/check', { route })).body).toMatchObject({ allowed: true })
  expect([await usedOf('per-ip', { route, ip }), await usedOf('per-ip', { route, ip: '127.0.0.5' })]).toEqual([0, 1])
})

/** The status code of a gRPC call that asks about a subject; 0 when it is answered. */
function callGrpc(authorization: string, entries: Readonly<Record<string, string>>): Promise<number> {
  const folder = new URL('../../services/ingress/src/grpc/proto', import.meta.url).pathname
  const found = loadPackageDefinition(loadSync('rls.proto', { includeDirs: [folder] }))
  const service = ['envoy', 'service', 'ratelimit', 'v3', 'RateLimitService'].reduce<unknown>(
    (at, name) => Reflect.get(Object(at), name),
    found,
  )
  const stub = new (service as new (...args: unknown[]) => Client)(ingress.grpc, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('authorization', authorization)
  const descriptors = [{ entries: Object.entries(entries).map(([key, value]) => ({ key, value })) }]
  return new Promise((done) => {
    const answered = (error: ServiceError | null) => {
      stub.close()
      done(error === null ? 0 : error.code)
    }
    Reflect.get(stub, 'ShouldRateLimit').call(stub, { domain: 'mesh', descriptors }, metadata, answered)
  })
}

test("a subject's key does not open gRPC; made-up methods are one in the records of every entry point", async () => {
  expect(await callGrpc('Bearer mallory-key', { subject: 'bob' })).toBe(16)
  const methods = Array.from(
    { length: 90 },
    (_, at) => `QZ${String.fromCharCode(65 + (at % 26))}${'K'.repeat(at % 30)}`,
  )
  const checks = methods.map((method) => ({ route: '/x', method }))
  const { body } = await ask('mallory-key', '/v1/check/batch', { checks })
  const last = body.results.at(-1).id
  for (const method of ['QZTKAB', 'G ET']) {
    expect(await callGrpc('Bearer app-token', { subject: 'mallory', method, path: '/x' })).toBe(0)
  }
  const final = await ask('mallory-key', '/v1/check', { method: 'GET', route: '/last' })
  const found = (records: readonly ReadRecord[]) =>
    records.flatMap(({ value }) => {
      const parsed = parseDecision(value ?? Buffer.alloc(0))
      return parsed.kind === 'decision' && parsed.decision.subject === 'mallory' ? [parsed.decision] : []
    })
  const isAll = (records: readonly ReadRecord[]) =>
    [last, final.body.id].every((id) => found(records).some((decision) => decision.id === id))
  const records = found(await readTopic(kafkaOptions(kafka.address), topics.decisions, isAll))
  const asked = records.filter(({ route, method }) => route === '*' && method !== 'GET')
  expect([asked.length, [...new Set(asked.map(({ method }) => method))]]).toEqual([92, ['OTHER']])
})
