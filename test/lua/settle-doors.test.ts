import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { openMemoryIngress, sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { createLayers } from '@weir/redis/layers/all-layers.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { listenForTest } from '../support/listen.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

const policyText = (subject: string, port: number) => `
version: 1
plans: { free: { limits: [day, bucket] }, unlimited: { limits: [] } }
limits:
  day: { algorithm: fixed_window, size: 1000, period: day }
  bucket: { algorithm: token_bucket, size: 1000, window: 1d }
  ${subject}-all: { algorithm: fixed_window, size: 500, window: 1h, by: [route] }
routes:
  - { match: "POST /v1/answers", cost: 100, settle: 15m, refundOn: [502, 503] }
  - { match: "POST /v1/flaky", cost: 30, refundOn: [502, 503], upstream: here }
  - { match: "POST /v1/shared", cost: 100, limits: [${subject}-all] }
  - { match: "POST /v1/bounded", cost: 100, settle: 15m, settleMax: 150 }
upstreams: { here: { url: "http://127.0.0.1:${port}" }, gone: { url: "http://127.0.0.1:1", hosts: [gone.test] } }
subjects:
  ${subject}: { plan: free, keys: [ { sha256: "${sha256(`${subject}-key`)}" } ] }
  other: { plan: free, keys: [ { sha256: "${sha256('other-key')}" } ] }
  ${subject}-unlimited: { plan: unlimited }
tokens:
  ci: { sha256: "${sha256('ci-token')}", scopes: [check] }
  reader: { sha256: "${sha256('read-token')}", scopes: [read] }
`

/** The two listeners over a real Redis; `owner` names the process. Processes of one test share their journal. */
async function open() {
  const subject = `doors-${randomUUID()}`
  const statuses: number[] = []
  const upstream = createServer((request, response) => {
    request.resume()
    response.writeHead(statuses.shift() ?? 200).end('made')
  })
  const port = await listenForTest(upstream)
  const redis = await openLimiterRedis(inject('redisUrl'))
  const log = createMemoryDecisionLog()
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000 }
  const startProcess = async (owner: string, graceMs = 60_000) => {
    const store = new RedisLimitStore({ redis, ...common })
    const layers = createLayers(store, { ...common, processes: () => 1 }).store
    const settlements = new RedisSettlements({ redis, owner, graceMs, answerMs: 20_000 })
    const ports = { store: layers, log, clock: systemClock, settlements }
    const apps = await openMemoryIngress(policyText(subject, port), ports)
    onTestFinished(async () => {
      await apps.proxy.close()
      await apps.api.close()
      store.close()
    })
    const post = async (url: string, payload: unknown, key = `${subject}-key`) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const answer = await apps.api.inject({ method: 'POST', url, headers, payload: JSON.stringify(payload) })
      return { status: answer.statusCode, headers: answer.headers, body: answer.json() }
    }
    return {
      ...apps,
      check: (body: object, key?: string) => post('/v1/check', body, key),
      settle: (body: object, key?: string) => post('/v1/settle', body, key),
      used: async () => {
        const { body } = await post('/v1/check', { peek: true, cost: 0 })
        return body.limits.map((state: { used: number }) => state.used)
      },
    }
  }
  const corrections = () => log.records.filter(({ corrects }) => corrects !== undefined)
  return { subject, statuses, log, redis, corrections, startProcess }
}

test('a check that asked for it is settled by its own subject: on its limits, and by one record that corrects it', async () => {
  const { subject, log, corrections, startProcess } = await open()
  const { check, settle, used } = await startProcess('one')
  const { body: checked } = await check({ route: 'POST /v1/x', cost: 50, settle: '15m' })
  const first = await settle({ id: checked.id, cost: 20 })
  expect(first).toMatchObject({
    status: 200,
    headers: { 'cache-control': 'no-store' },
    body: {
      id: checked.id,
      cost: 20,
      adjustment: -30,
      limits: [
        { name: 'day', used: 20 },
        { name: 'bucket', used: 20 },
      ],
    },
  })
  expect(await used()).toEqual([20, 20])
  const [decision] = log.records
  expect(corrections()).toEqual([
    {
      ...decision,
      id: first.body.correction,
      cost: 0,
      count: 0,
      corrects: checked.id,
      adjustment: -30,
      limits: [
        expect.objectContaining({ name: 'day', used: 20, remaining: 980 }),
        expect.objectContaining({ name: 'bucket', used: 20 }),
      ],
    },
  ])
  expect(decision).toMatchObject({ id: checked.id, subject, cost: 50, outcome: 'allow', charged: 'yes' })
})

test('a check of cost 0 leaves nothing in Redis, neither to settle nor under its idempotency key', async () => {
  const { subject, redis, startProcess } = await open()
  const { check, settle } = await startProcess('one')
  const body = { subject, cost: 0, settle: '24h', idempotency_key: randomUUID() }
  const { body: checked } = await check(body, 'ci-token')
  expect(checked.allowed).toBe(true)
  expect(await redis.keys(`weir:1:{${subject}}:*`)).toEqual([])
  expect((await settle({ id: checked.id, subject, cost: 5 }, 'ci-token')).status).toBe(404)
})

test('a token names the subject; a key settles its own only; nobody settles what was not charged to be settled', async () => {
  const { subject, corrections, startProcess } = await open()
  const { check, settle } = await startProcess('one')
  const { body: checked } = await check({ subject, cost: 5, settle: '1h' }, 'ci-token')
  const { id } = checked
  const statusOf = async (body: object, key?: string) => (await settle(body, key)).status
  expect(await statusOf({ id, cost: 1, subject }, 'read-token')).toBe(403)
  expect(await statusOf({ id, cost: 1, subject }, 'other-key')).toBe(403)
  expect(await statusOf({ id, cost: 1 }, 'other-key')).toBe(404)
  expect(await statusOf({ id, cost: 1 }, 'wrong-key')).toBe(401)
  expect(await statusOf({ id, cost: 1 }, 'ci-token')).toBe(400)
  expect(await statusOf({ id, cost: 1, subject: 'other' }, 'ci-token')).toBe(404)
  const plain = await check({ cost: 5 })
  expect(await statusOf({ id: plain.body.id, cost: 1 })).toBe(404)
  const refused = await check({ subject, cost: 5_000, settle: '1h' }, 'ci-token')
  const ofRefused = { id: refused.body.id, cost: 1, subject }
  expect([refused.body.allowed, await statusOf(ofRefused, 'ci-token')]).toEqual([false, 404])
  expect(corrections()).toEqual([])
  expect(await statusOf({ id, cost: 1, subject }, 'ci-token')).toBe(200)
  expect(await statusOf({ id, cost: 1, subject })).toBe(403)
})

test('a subject settles with its own key nothing that the proxy, a gateway, a token or a route made to be settled', async () => {
  const { subject, corrections, startProcess } = await open()
  const { proxy, api, check, settle, used } = await startProcess('one')
  const headers = { authorization: `Bearer ${subject}-key`, host: 'here.test' }
  const route = 'POST /v1/answers'
  const request = { method: 'POST', headers } as const
  const proxied = await proxy.inject({ ...request, url: '/v1/bounded' })
  const authorized = await api.inject({ ...request, url: '/v1/authorize/v1/answers' })
  const idempotency_key = 'order 7'
  const checks = [
    await check({ subject, cost: 100, settle: '1h' }, 'ci-token'),
    await check({ subject, route }, 'ci-token'),
    await check({ subject, route, settle: '1h', idempotency_key }, 'ci-token'),
    await check({ route }),
  ]
  const ids = [
    proxied.headers['weir-decision'],
    authorized.headers['weir-decision'],
    ...checks.map(({ body }) => body.id),
  ]
  expect(new Set(ids).size).toBe(6)
  // An own check under the key of a token's is a decision of its own.
  const own = await check({ route, settle: '1h', idempotency_key })
  expect(ids).not.toContain(own.body.id)
  for (const id of ids) {
    for (const cost of [0, 100, 101]) {
      const { status, body } = await settle({ id, cost })
      expect([status, body.type]).toEqual([403, 'urn:weir:problem:forbidden'])
    }
  }
  expect([corrections(), await used()]).toEqual([[], [700, 700]])
  for (const id of ids) expect((await settle({ id, cost: 0, subject }, 'ci-token')).status).toBe(200)
  expect([corrections().length, (await used())[0]]).toEqual([6, 100])
})

test('a subject settles its own check to no more than it was charged, and takes nothing back from limits that others share', async () => {
  const { subject, corrections, startProcess } = await open()
  const { check, settle, used } = await startProcess('one')
  const shared = async () => {
    const peek = { subject: 'other', route: 'POST /v1/shared', peek: true, cost: 1 }
    return (await check(peek, 'ci-token')).body.limits.at(-1).used
  }
  const checked = await check({ route: 'POST /v1/shared', settle: '1h' })
  const { id } = checked.body
  for (const cost of [101, 1_000_000_000]) {
    const { status, body } = await settle({ id, cost })
    expect([status, body.type, body.cost_max]).toEqual([403, 'urn:weir:problem:settlement-too-high', 100])
  }
  expect([corrections(), await used(), await shared()]).toEqual([[], [100, 100], 100])
  const settled = await settle({ id, cost: 30 })
  expect(settled.body).toMatchObject({ adjustment: -70, limits: [{ name: 'day' }, { name: 'bucket' }] })
  expect(await settle({ id, cost: 30, subject }, 'ci-token')).toMatchObject({ body: settled.body })
  expect([corrections().length, await used(), await shared()]).toEqual([1, [30, 30], 100])
})

test('a token settles to settleMax of the route at most, else to the size of the largest limit; its corrections reach shared limits', async () => {
  const { subject, corrections, startProcess } = await open()
  const { check, settle } = await startProcess('one')
  const settled = async (body: object, cost: number, who = subject) => {
    const checked = await check({ subject: who, settle: '1h', ...body }, 'ci-token')
    const answer = await settle({ id: checked.body.id, cost, subject: who }, 'ci-token')
    return [answer.status, answer.body.cost_max ?? answer.body.limits.map(({ name }: { name: string }) => name)]
  }
  expect(await settled({ route: 'POST /v1/bounded' }, 151)).toEqual([403, 150])
  expect(await settled({ route: 'POST /v1/bounded' }, 150)).toEqual([200, ['day', 'bucket']])
  expect(await settled({ route: 'POST /v1/bounded', cost: 160 }, 160)).toEqual([200, []])
  expect(await settled({ route: 'POST /v1/bounded', cost: 160 }, 161)).toEqual([403, 160])
  expect(await settled({ route: 'POST /v1/shared' }, 1_001)).toEqual([403, 1_000])
  expect(await settled({ route: 'POST /v1/shared' }, 200)).toEqual([200, ['day', 'bucket', `${subject}-all`]])
  expect(corrections()).toHaveLength(2)
  expect((await settled({}, 5_000, `${subject}-unlimited`))[0]).toBe(200)
})

test.each([
  ['a negative cost', { cost: -1 }],
  ['a cost that is no safe integer', { cost: 2 ** 53 }],
  ['a part of a unit', { cost: 0.5 }],
  ['a cost in text', { cost: '5' }],
  ['no cost', { cost: undefined }],
  ['an id that is none', { id: 'weir:1:{acme}' }],
  ['an unknown member', { costs: 1 }],
])('%s is refused in words', async (_, wrong) => {
  const { startProcess } = await open()
  const { settle } = await startProcess('one')
  const answer = await settle({ id: '019abcde-0000-7000-8000-000000000000', cost: 1, ...wrong })
  expect([answer.status, answer.body.type]).toEqual([400, 'urn:weir:problem:bad-request'])
})

test('the proxy gives back what a request was charged that the upstream failed, and records that; other answers stay charged', async () => {
  const { subject, statuses, log, corrections, startProcess } = await open()
  const { proxy, used } = await startProcess('one')
  const headers = { authorization: `Bearer ${subject}-key`, host: 'api.test' }
  const ask = async (status: number) => {
    statuses.push(status)
    const answer = await proxy.inject({ method: 'POST', url: '/v1/flaky', headers })
    return [answer.statusCode, answer.headers['weir-decision']]
  }
  expect((await ask(200))[0]).toBe(200)
  expect((await ask(500))[0]).toBe(500)
  const [status, id] = await ask(502)
  expect(status).toBe(502)
  await expect.poll(used).toEqual([60, 60])
  await expect.poll(corrections).toHaveLength(1)
  const decision = log.records.find((record) => record.id === id)
  expect(corrections()[0]).toMatchObject({
    subject,
    corrects: id,
    adjustment: -30,
    cost: 0,
    count: 0,
    charged: 'no',
    ts: decision?.ts,
    route: 'POST /v1/flaky',
    outcome: 'allow',
    limits: [],
  })
})

test('what the proxy answers in place of an upstream that is gone is given back too, and cannot be settled again', async () => {
  const { subject, corrections, startProcess } = await open()
  const { proxy, settle, used } = await startProcess('one')
  const headers = { authorization: `Bearer ${subject}-key`, host: 'gone.test' }
  const answer = await proxy.inject({ method: 'POST', url: '/v1/answers', headers })
  expect(answer.statusCode).toBe(502)
  await expect.poll(corrections).toHaveLength(1)
  expect(corrections()[0]).toMatchObject({ adjustment: -100, limits: [{ used: 0 }, { used: 0 }] })
  expect(await used()).toEqual([0, 0])
  const again = { id: answer.headers['weir-decision'], cost: 40, subject }
  expect(await settle(again, 'ci-token')).toMatchObject({ status: 409 })
})

test('a decision on a route with settle can be settled by its header Weir-Decision, through the proxy and for gateways', async () => {
  const { subject, corrections, startProcess } = await open()
  const { proxy, api, settle, used } = await startProcess('one')
  const headers = { authorization: `Bearer ${subject}-key`, host: 'api.test' }
  const proxied = await proxy.inject({ method: 'POST', url: '/v1/answers', headers })
  const asked = await api.inject({ method: 'POST', url: '/v1/authorize/v1/answers', headers })
  for (const answer of [proxied, asked]) {
    expect(answer.statusCode).toBe(200)
    const id = answer.headers['weir-decision']
    expect(await settle({ id, cost: 170, subject }, 'ci-token')).toMatchObject({
      status: 200,
      body: { adjustment: 70 },
    })
  }
  expect([corrections().length, await used()]).toEqual([2, [340, 340]])
})
