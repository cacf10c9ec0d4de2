import { expect, test } from 'vitest'
import { openMemoryIngress, sha256 } from '../../testing/memory-ingress.ts'

const policyText = `
version: 1
identity: { trustedProxies: [127.0.0.1/32] }
plans: { free: { limits: [minute, per-key, bucket] }, unlimited: { limits: [] } }
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  per-key: { algorithm: fixed_window, size: 50, window: 1m, by: [key] }
  bucket: { algorithm: token_bucket, size: 10, burst: 60, window: 1m, by: [subject, method] }
  per-ip: { algorithm: fixed_window, size: 500, window: 1m, by: [ip] }
  per-route: { algorithm: fixed_window, size: 500, window: 1m, by: [route] }
  per-region: { algorithm: fixed_window, size: 500, window: 1m, by: ["attribute:region"] }
  total: { algorithm: fixed_window, size: 500, window: 1m, by: [global], mode: shadow }
routes:
  - { match: "POST /v1/mine", cost: 5 }
  - { match: "POST /v1/free", cost: 0 }
  - { match: "POST /v1/address", cost: 2, limits: [per-ip] }
  - { match: "POST /v1/shared", cost: 2, limits: [per-route] }
  - { match: "POST /v1/region", cost: 2, limits: [per-region] }
  - { match: "POST /v1/shadow", cost: 2, limits: [total] }
  - { match: "POST /v1/units", cost: "header:x-units" }
subjects:
  acme: { plan: free, keys: [ { sha256: "${sha256('acme-key')}" } ] }
  globex: { plan: free, keys: [ { sha256: "${sha256('globex-key')}" } ] }
  hooli: { plan: unlimited, keys: [ { sha256: "${sha256('hooli-key')}" } ] }
tokens:
  app: { sha256: "${sha256('app-token')}", scopes: [check] }
`

async function open() {
  const { api, records } = await openMemoryIngress(policyText)
  const post = async (url: string, payload: object, key: string, more: { forwarded?: string; from?: string } = {}) => {
    const forwarded = more.forwarded === undefined ? {} : { 'x-forwarded-for': more.forwarded }
    const headers = { authorization: `Bearer ${key}`, ...forwarded }
    const answer = await api.inject({
      method: 'POST',
      url,
      headers,
      payload,
      remoteAddress: more.from ?? '198.51.100.7',
    })
    return { status: answer.statusCode, body: answer.json() }
  }
  const check = (payload: object, key = 'acme-key', more = {}) => post('/v1/check', payload, key, more)
  const used = async (payload: object) => {
    const { body } = await check({ subject: 'globex', ...payload, cost: 1, peek: true }, 'app-token')
    return Object.fromEntries(body.limits.map(({ name, used }: { name: string; used: number }) => [name, used]))
  }
  return { api, post, check, used, records }
}

const forbidden = [403, 'urn:weir:problem:forbidden']
const huge = 1_000_000_000
const table: readonly (readonly [what: string, body: object, isAllowed: boolean])[] = [
  ['nothing', {}, true],
  ['its own name', { subject: 'acme' }, true],
  ['another subject', { subject: 'globex' }, false],
  ['the key of another subject', { key: 'globex-key' }, false],
  ['a peek at another subject', { subject: 'globex', peek: true }, false],
  ['the address of another client', { ip: '203.0.113.7' }, false],
  ['its own address', { ip: '198.51.100.7' }, false],
  ['a peek at an address', { ip: '203.0.113.7', peek: true }, false],
  ['attributes', { route: 'POST /v1/region', attributes: { region: 'eu' } }, false],
  ['a peek at attributes', { attributes: { region: 'eu' }, peek: true }, false],
  ['no attributes in an object', { attributes: {} }, false],
  ['the cost of the route', { route: 'POST /v1/mine', cost: 5 }, true],
  ['a cost of 0', { route: 'POST /v1/mine', cost: 0 }, false],
  ['a cost of 0 without a route', { cost: 0 }, false],
  ['a cost of 0 to settle', { cost: 0, settle: '1h' }, false],
  ['a cost of 0 on a route that is free', { route: 'POST /v1/free', cost: 0 }, true],
  ['a cost below that of the route', { route: 'POST /v1/mine', cost: 4 }, false],
  ['a cost below that of the route, to settle', { route: 'POST /v1/mine', cost: 4, settle: '1h' }, false],
  ['a cost above that of the route', { route: 'POST /v1/mine', cost: 6 }, true],
  ['the smallest size of its own limits', { cost: 50 }, true],
  ['more than the smallest size of its own limits', { cost: 51 }, false],
  ['a cost above that of a route with a limit by address', { route: 'POST /v1/address', cost: 3 }, false],
  ['a cost above that of a route with a limit by route', { route: 'POST /v1/shared', cost: 3 }, false],
  ['a cost above that of a route with a limit by attribute', { route: 'POST /v1/region', cost: 3 }, false],
  ['a cost above that of a route with a shadow limit of all', { route: 'POST /v1/shadow', cost: 3 }, false],
  ['a large cost on a shared limit', { route: 'POST /v1/shared', cost: huge }, false],
  ['the cost of a route with a shared limit', { route: 'POST /v1/shared', cost: 2 }, true],
  ['a cost of 0 where requests say theirs', { route: 'POST /v1/units', cost: 0 }, false],
  ['a cost where requests say theirs', { route: 'POST /v1/units', cost: 7 }, true],
  ['a peek with a cost of 0', { cost: 0, peek: true }, true],
  ['a peek with a large cost', { route: 'POST /v1/shared', cost: huge, peek: true }, true],
]

test.each(table)("a subject's own key asks with %s: %j is allowed: %j", async (_, body, isAllowed) => {
  const { check, post, records } = await open()
  const one = await check(body)
  const many = await post('/v1/check/batch', { checks: [{}, body, {}] }, 'acme-key')
  const [before, inBatch, after] = many.body.results
  expect([before.problem, after.problem]).toEqual([undefined, undefined])
  if (isAllowed) {
    expect([one.status, inBatch.problem]).toEqual([200, undefined])
    return
  }
  expect([one.status, one.body.type]).toEqual(forbidden)
  expect([inBatch.problem.status, inBatch.problem.type]).toEqual(forbidden)
  expect(records).toHaveLength(2)
})

test('a token with the scope check may ask all that a key of a subject may not', async () => {
  const { check } = await open()
  for (const [what, body, isAllowed] of table) {
    if (isAllowed) continue
    const about = 'key' in body || 'subject' in body ? body : { subject: 'acme', ...body }
    expect([what, (await check(about, 'app-token')).status]).toEqual([what, 200])
  }
})

test('a subject without limits asks for any cost from that of the route on', async () => {
  const { check } = await open()
  expect((await check({ route: 'POST /v1/mine', cost: 4 }, 'hooli-key')).status).toBe(403)
  expect((await check({ route: 'POST /v1/mine', cost: 5_000 }, 'hooli-key')).body).toMatchObject({ allowed: true })
})

test('a check by the key of a subject counts at the address of its connection, which only trusted proxies can name', async () => {
  const { check, used } = await open()
  const route = 'POST /v1/address'
  await check({ route }, 'acme-key', { from: '198.51.100.7', forwarded: '203.0.113.7' })
  await check({ route }, 'acme-key', { from: '127.0.0.1', forwarded: '203.0.113.9' })
  expect((await used({ route, ip: '198.51.100.7' }))['per-ip']).toBe(2)
  expect((await used({ route, ip: '203.0.113.9' }))['per-ip']).toBe(2)
  expect((await used({ route, ip: '203.0.113.7' }))['per-ip']).toBe(0)
})

test('what a subject admitted under an idempotency key is no repeat to a token or a gateway, nor the other way round', async () => {
  const { api, check, records } = await open()
  const asGateway = async (id: string) => {
    const headers = { authorization: 'Bearer acme-key', 'x-original-method': 'GET', 'x-original-uri': '/v1/x' }
    await api.inject({ method: 'GET', url: `/v1/authorize?request_id=${id}`, headers, remoteAddress: '127.0.0.1' })
  }
  const keys = [
    'order:0001',
    'own order:0001',
    'token own order:0001',
    'gateway order:0001',
    'token gateway order:0001',
  ]
  for (let round = 0; round < 2; round += 1) {
    for (const idempotency_key of keys) {
      await check({ idempotency_key })
      await check({ subject: 'acme', idempotency_key }, 'app-token')
    }
    await asGateway('order:0001')
  }
  expect(records).toHaveLength(2 * keys.length + 1)
})

test('another question under an idempotency key is 422, charges nothing and has no record', async () => {
  const { check, records } = await open()
  const first = { subject: 'acme', route: 'GET /v1/x', attributes: { a: 1, b: 2 }, idempotency_key: 'order-1' }
  const one = await check(first, 'app-token')
  const again = { ...first, attributes: { b: 2, a: 1 }, ip: '203.0.113.8', wait: '1s' }
  expect((await check(again, 'app-token')).body.id).toBe(one.body.id)
  for (const other of [{ route: 'POST /v1/x' }, { cost: 50_000 }, { attributes: { a: 2, b: 2 } }, { settle: '1m' }]) {
    const { status, body } = await check({ ...first, ...other }, 'app-token')
    expect([other, status, body.type]).toEqual([other, 422, 'urn:weir:problem:idempotency-key-reused'])
  }
  expect(records).toHaveLength(1)
})

test('an idempotency key may be any 256 characters', async () => {
  const { check, records } = await open()
  const idempotency_key = '😀'.repeat(256)
  for (const key of ['acme-key', 'acme-key']) expect((await check({ idempotency_key }, key)).status).toBe(200)
  expect((await check({ subject: 'acme', idempotency_key }, 'app-token')).status).toBe(200)
  expect(records).toHaveLength(2)
})
