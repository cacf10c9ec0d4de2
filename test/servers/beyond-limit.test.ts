import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type PlainUpstream, startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { send } from '../support/gateways/send.ts'
import { readMetric } from '../support/read-metric.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { readTopic } from '../support/servers/read-topic.ts'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'
import { type RunningIngress, startIngress } from '../support/start-ingress.ts'

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
const actions = ['deny', 'drop', 'degrade', 'challenge', 'block'] as const
const week = { algorithm: 'fixed_window', size: 1, window: '7d' }
const page = 'https://example.com/captcha'

/** One count for all subjects of a plan; a limit of its own for every test that counts. */
const delaying = (perSecond: number, delay: string, queue: number) => ({
  ...{ algorithm: 'token_bucket', size: perSecond, window: '1s', burst: 1, by: ['global'] },
  onExceed: { delay, queue },
})

const policyOf = (upstream: string) => {
  const limits = {
    ...Object.fromEntries(actions.map((name) => [name, { ...week, onExceed: name }])),
    challenge: { ...week, onExceed: { challenge: page } },
    block: { ...week, block: '10m', onExceed: 'block' },
    order: delaying(20, '20s', 100),
    few: delaying(10, '20s', 30),
    stop: delaying(2, '60s', 100),
    own: { algorithm: 'sliding_log', size: 100, window: '1m', onExceed: 'delay' },
  }
  const subjects = [
    ...actions,
    'own',
    ...['order', 'few', 'stop'].flatMap((name) => ['a', 'b', 'c'].map((one) => `${name}-${one}`)),
  ]
  return {
    version: 1,
    plans: Object.fromEntries(Object.keys(limits).map((name) => [name, { limits: [name] }])),
    limits,
    upstreams: { api: { url: upstream } },
    subjects: Object.fromEntries(
      subjects.map((name) => [name, { plan: name.split('-')[0], keys: [{ sha256: sha256(name) }] }]),
    ),
  }
}

let kafka: RunningServer
let redis: RunningServer
let upstream: PlainUpstream
let environment: Record<string, string>
beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  redis = await startServer(redisServer)
  upstream = await startPlainUpstream()
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  const policyFile = `${kafka.dir}/weir.yaml`
  await writeFile(policyFile, JSON.stringify(policyOf(upstream.url)))
  environment = { WEIR_POLICY_FILE: policyFile, WEIR_REDIS_URL: redis.address, WEIR_KAFKA_BROKERS: kafka.address }
}, 180_000)
afterAll(async () => {
  await upstream?.close()
  await redis?.close()
  await kafka?.close()
})

async function open(): Promise<RunningIngress> {
  const ingress = await startIngress(environment)
  onTestFinished(() => ingress.close())
  return ingress
}

/** What Kafka has of the subjects of a test, once it has so many decisions. */
async function recordsOf(prefix: string, decisions: number) {
  const of = (records: readonly { readonly value: Buffer | null }[]) =>
    records.flatMap(({ value }) => {
      const parsed = parseDecision(value ?? Buffer.alloc(0))
      return parsed.kind === 'decision' && parsed.decision.subject.startsWith(prefix) ? [parsed.decision] : []
    })
  const count = (records: readonly { readonly count: number }[]) => records.reduce((sum, one) => sum + one.count, 0)
  const read = await readTopic(
    kafkaOptions(kafka.address),
    topics.decisions,
    (records) => count(of(records)) >= decisions,
  )
  return { records: of(read), count: count(of(read)) }
}

/** A client that can leave. Its answer's status, 0 for none. */
function client(ingress: RunningIngress, key: string) {
  const { hostname, port } = new URL(ingress.proxy)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /x HTTP/1.1\r\nhost: api.test\r\nconnection: close\r\nx-api-key: ${key}\r\n\r\n`)
  let said = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    said += chunk
  })
  socket.on('error', () => undefined)
  const status = once(socket, 'close').then(() => Number(said.slice(9, 12)))
  return { status, leave: () => socket.destroy() }
}

const waiting = (ingress: RunningIngress) => readMetric(ingress.ops, 'weir_requests_waiting')
const hasWaiting = (ingress: RunningIngress, count: number) =>
  waitUntil(async () => (await waiting(ingress)) >= count, { deadlineMs: 20_000, everyMs: 10 })
const crowd = (name: string, counts: readonly number[]) =>
  counts.flatMap((count, at) => Array.from({ length: count }, () => `${name}-${'abc'[at]}`))

test('50 clients of three subjects that wait are all served, in the order in which they came, evenly, and each is recorded once', async () => {
  const ingress = await open()
  const startedAt = performance.now()
  const served = () =>
    upstream.seen.map(({ headers }) => `${headers['x-weir-subject']}`).filter((id) => id.startsWith('order'))
  const clients: ReturnType<typeof client>[] = []
  for (const [at, count] of [35, 10, 5].entries()) {
    for (let n = 0; n < count; n += 1) clients.push(client(ingress, `order-${'abc'[at]}`))
    const haveCome = async () => (await waiting(ingress)) + served().length >= clients.length
    expect(await waitUntil(haveCome, { deadlineMs: 20_000, everyMs: 10 })).toBe(true)
  }
  expect(await Promise.all(clients.map(({ status }) => status))).toEqual(Array.from({ length: 50 }, () => 200))
  const tookMs = performance.now() - startedAt
  // 49 after the first, 50 ms apart; a busy machine is late, and catches up.
  expect(tookMs).toBeGreaterThan(49 * 50 - 60)
  // A busy machine serves a few of them in one moment, and those reach the upstream in any order.
  const firstOf = (id: string) => served().indexOf(id)
  expect([firstOf('order-b') >= 30, firstOf('order-c') >= 40]).toEqual([true, true])
  const { records, count } = await recordsOf('order', 50)
  expect([count, records.length, records.every(({ outcome }) => outcome === 'allow')]).toEqual([50, 50, true])
  expect(await waiting(ingress)).toBe(0)
})

test('The queue is bounded: a request that finds it full is denied immediately; clients that leave free their places, and are recorded', async () => {
  const ingress = await open()
  const clients = crowd('few', [30, 15, 5]).map((key) => client(ingress, key))
  await hasWaiting(ingress, 25)
  expect(await waiting(ingress)).toBeLessThanOrEqual(30)
  for (const { leave } of clients) leave()
  await waitUntil(async () => (await waiting(ingress)) === 0, { deadlineMs: 2_000 })
  expect(await waiting(ingress)).toBe(0)
  const served = upstream.seen.filter(({ headers }) => `${headers['x-weir-subject']}`.startsWith('few')).length
  expect(served).toBeLessThan(25)
  const { records, count } = await recordsOf('few', 50)
  expect(count).toBe(50)
  expect(records.filter(({ outcome }) => outcome === 'allow').length).toBeGreaterThanOrEqual(served)
  expect(records.filter(({ outcome }) => outcome === 'deny').every(({ reason }) => reason === 'limit')).toBe(true)
})

test('At a stop the waiting requests are served at the pace of their limit, the rest is denied within the grace, and none is left unanswered', async () => {
  const ingress = await startIngress(environment)
  const clients = crowd('stop', [40, 8, 2]).map((key) => client(ingress, key))
  await hasWaiting(ingress, 45)
  const startedAt = performance.now()
  await ingress.close()
  const tookMs = performance.now() - startedAt
  const statuses = await Promise.all(clients.map(({ status }) => status))
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length
  expect(count(200) + count(429)).toBe(50)
  // 2 a second for 8 s, and those before.
  expect(count(200)).toBeGreaterThan(15)
  expect(count(200)).toBeLessThan(45)
  expect(tookMs).toBeGreaterThan(7_000)
  expect(tookMs).toBeLessThan(20_000)
  // Its journal died with it, but for what was published: everything, at an ordered stop.
  expect((await recordsOf('stop', 50)).count).toBe(50)
}, 60_000)

test('every action is recorded, and done as the policy says', async () => {
  const ingress = await open()
  const ask = (key: string, accept = '*/*') =>
    send(ingress.proxy, { headers: { host: 'api.test', 'x-api-key': key, accept } }).catch(() => undefined)
  for (const action of actions) expect((await ask(action))?.status).toBe(200)
  const statuses = []
  for (const action of actions) statuses.push((await ask(action))?.status)
  expect(statuses).toEqual([429, undefined, 200, 429, 429])
  const sent = await ask('challenge', 'text/html')
  expect([sent?.status, sent?.headers.location]).toEqual([303, page])
  expect(upstream.seen.at(-1)?.headers['weir-degraded']).toBe('degrade')
  for (const action of actions) {
    const { records } = await recordsOf(action, 2)
    const told = records.map(({ outcome, reason, mode, denied_by }) => `${outcome} ${reason} ${mode} ${denied_by}`)
    const outcome = action === 'degrade' ? 'allow' : 'deny'
    expect(told.slice(0, 2)).toEqual(['allow ok enforce ', `${outcome} limit enforce ${action}`])
    expect(await readMetric(ingress.ops, `weir_limit_exceeded_actions_total{action="${action}"}`)).toBe(
      action === 'challenge' ? 2 : 1,
    )
  }
})

test('a pause that one process receives holds in the others immediately', async () => {
  const [one, other] = await Promise.all([open(), open()])
  const headers = { 'content-type': 'application/json', 'x-api-key': 'own' }
  const post = async ({ api }: RunningIngress, path: string, body: object) =>
    JSON.parse((await send(api, { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)) })).body)
  expect(await post(other, '/v1/check', {})).toMatchObject({ allowed: true })
  expect(await post(one, '/v1/pause', { limit: 'own', for: '30s' })).toEqual({ limit: 'own', retry_after_ms: 30_000 })
  const checked = await post(other, '/v1/check', {})
  expect(checked).toMatchObject({ allowed: false, reason: 'blocked', denied_by: 'own', on_exceed: 'delay' })
  expect(checked.retry_after_ms).toBeGreaterThan(25_000)
  expect((await post(one, '/v1/pause', { limit: 'own', for: '1s' })).retry_after_ms).toBeGreaterThan(20_000)
})
