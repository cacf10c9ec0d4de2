import { METHODS } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { costMax } from '@weir/core/limits/limit-store.ts'
import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import type { InjectOptions } from 'fastify'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'

const acme = { 'x-api-key': 'acme-key' }
const gateway = '10.1.2.3'

const policyText = `
version: 1
identity: { trustedProxies: [10.0.0.0/8], trustedHeaders: { from: [10.9.9.9], subject: x-user } }
plans: { free: { limits: [minute] } }
limits:
  minute: { algorithm: fixed_window, size: 6, window: 1m }
  per-ip: { algorithm: fixed_window, size: 50, window: 1m, by: [ip], applies: all }
  per-tenant: { algorithm: fixed_window, size: 9, window: 1m, by: [query:tenant] }
routes:
  - { match: "POST /v1/search", cost: 5 }
  - { match: "GET /v1/lookup", cost: "query:count" }
  - { match: "POST /v1/bulk", cost: "json:/items" }
  - { match: "GET /v1/tenants", limits: [per-tenant] }
subjects:
  acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}", id: k1 }] }
  zoe: { plan: free, keys: [{ sha256: "${sha256('zoe-key')}", id: k2 }] }
`

let apps: Awaited<ReturnType<typeof openMemoryIngress>>
let decisions: MemoryDecisionLog

beforeEach(async () => {
  apps = await openMemoryIngress(policyText)
  decisions = apps.decisions
})
afterEach(async () => {
  await apps.proxy.close()
  await apps.api.close()
})

/** As nginx asks: GET, with the original request in headers. */
const ask = (
  method: string,
  uri: string,
  headers: Record<string, string> = acme,
  query = '',
  remoteAddress = gateway,
) =>
  apps.api.inject({
    method: 'GET',
    url: `/v1/authorize${query}`,
    remoteAddress,
    headers: { 'x-original-method': method, 'x-original-uri': uri, ...headers },
  })

/** As Envoy asks: the original method, and the path after that of the endpoint. */
const askByPath = (method: string, url: string, headers: Record<string, string> = acme) =>
  apps.api.inject({ method: method as 'GET', url, headers, remoteAddress: gateway } satisfies InjectOptions)

it('allows with 200, an empty body, RateLimit headers, the decision and who calls', async () => {
  const answer = await ask('GET', '/hello')
  expect([answer.statusCode, answer.body]).toEqual([200, ''])
  expect(answer.headers).toMatchObject({
    'weir-decision': expect.stringMatching(/^[0-9a-f-]{36}$/),
    'ratelimit-policy': '"minute";q=6;w=60, "per-ip";q=50;w=60',
    ratelimit: '"minute";r=5;t=50, "per-ip";r=49;t=50',
    'x-weir-subject': 'acme',
    'x-weir-plan': 'free',
    'x-weir-key-id': 'k1',
    'cache-control': 'no-store',
  })
})

it('leaves no header of the caller out, or a gateway would pass on what the client sent under its name', async () => {
  const { statusCode, headers } = await ask('GET', '/', { 'x-user': 'acme' }, '', '10.9.9.9')
  expect([statusCode, headers['x-weir-subject'], headers['x-weir-key-id']]).toEqual([200, 'acme', ''])
})

it('denies with 429, problem+json and Retry-After, to HEAD without the body', async () => {
  await ask('POST', '/v1/search')
  const answer = await ask('POST', '/v1/search')
  expect(answer.statusCode).toBe(429)
  expect(answer.headers).toMatchObject({ 'retry-after': '50', ratelimit: '"minute";r=1;t=50, "per-ip";r=45;t=50' })
  expect(answer.json()).toMatchObject({ status: 429, 'violated-policies': ['minute'] })
  expect(decisions.records.map(({ route, method, cost, outcome }) => [route, method, cost, outcome])).toEqual([
    ['POST /v1/search', 'POST', 5, 'allow'],
    ['POST /v1/search', 'POST', 5, 'deny'],
  ])
  await askByPath('GET', '/v1/authorize/x')
  const head = await askByPath('HEAD', '/v1/authorize/x')
  expect([head.statusCode, head.headers['retry-after'], head.body]).toEqual([429, '50', ''])
})

it('answers a gateway with deny_status=403 with the status and the problem in headers, because it reads no others', async () => {
  await ask('POST', '/v1/search')
  const denied = await ask('POST', '/v1/search', acme, '?deny_status=403')
  expect([denied.statusCode, denied.headers['x-limit-status'], denied.headers['retry-after']]).toEqual([
    403,
    '429',
    '50',
  ])
  expect(JSON.parse(String(denied.headers['x-weir-problem']))).toMatchObject({ status: 429 })
  const refused = await ask('GET', '/a%2Fb', acme, '?deny_status=403')
  expect([refused.statusCode, refused.headers['x-limit-status']]).toEqual([403, '400'])
  const unauthenticated = await ask('GET', '/', {}, '?deny_status=403')
  expect([unauthenticated.statusCode, unauthenticated.headers['www-authenticate']]).toEqual([401, 'Bearer'])
  decisions.isFull = true
  const unavailable = await ask('GET', '/', acme, '?deny_status=403')
  expect([unavailable.statusCode, unavailable.headers['x-limit-status']]).toEqual([503, '503'])
})

it('a refusal that cannot be recorded stays one for gateways that serve what is answered with 5xx, and has no id', async () => {
  await ask('POST', '/v1/search')
  decisions.isFull = true
  for (const [headers, query, status] of [
    [acme, '', 429],
    [acme, '?deny_status=403', 403],
    [{}, '', 429],
    [{ 'x-api-key': 'wrong' }, '?deny_status=403', 403],
  ] as const) {
    const answer = await ask('POST', '/v1/search', headers, query)
    expect([answer.statusCode, answer.headers['retry-after'], answer.headers['weir-decision']]).toEqual([
      status,
      '5',
      undefined,
    ])
    expect(answer.json().detail).toContain('could not be recorded')
  }
  expect(decisions.missed).toBe(4)
})

it.each(METHODS.filter((method) => method !== 'CONNECT'))(
  'answers %s on every path below /v1/authorize',
  async (method) => {
    const urls = ['/v1/authorize/', '/v1/authorize/v1/x?y=%zz', '/v1/authorize//a', '/v1/authorize/%73earch']
    for (const url of urls) {
      const answer = await askByPath(method, url, { ...acme, 'content-type': 'odd', 'content-length': '0' })
      expect([url, answer.statusCode]).toEqual([url, 200])
    }
    expect(decisions.records.map((record) => record.method)).toEqual(urls.map(() => method))
  },
)

it('answers without a look at the body, before it has come, and takes nothing after it for a request', async () => {
  const address = await apps.api.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect((apps.api.server.address() as AddressInfo).port, '127.0.0.1')
  const head = `POST /v1/authorize/x HTTP/1.1\r\nHost: ${new URL(address).host}\r\nX-API-Key: acme-key\r\n`
  socket.write(`${head}Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{"half`)
  let said = ''
  for await (const chunk of socket) said += String(chunk)
  expect(said).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(said.match(/HTTP\/1\.1/g)).toHaveLength(1)
})

it('normalizes what routes are matched by, and refuses what the gateway would pass on in a form of its own', async () => {
  for (const uri of ['/v1//search', '/v1/%73earch', '/v1/search/?x=1']) {
    await ask('POST', uri, { 'x-api-key': uri === '/v1//search' ? 'zoe-key' : 'acme-key' })
  }
  expect(decisions.records.map(({ route }) => route)).toEqual(Array.from({ length: 3 }, () => 'POST /v1/search'))
  for (const uri of ['/v1/search/../x', '/v1/search/%2E%2e/x', '/v1/search;x=1', '/v1%2Fsearch', '/v1/search%00']) {
    const answer = await ask('POST', uri)
    expect([uri, answer.statusCode]).toEqual([uri, 400])
    expect(answer.json().detail).toMatch(/^The path has .+\.$/)
  }
})

it('says itself what is wrong with a path that no router could read', async () => {
  const answer = await askByPath('GET', '/v1/authorize/%zz')
  expect([answer.statusCode, answer.json().type]).toEqual([400, 'urn:weir:problem:bad-request'])
})

it("reads costs and scopes from the client's request, and says that a body's cost cannot be had", async () => {
  expect((await ask('GET', '/v1/lookup?count=4')).headers.ratelimit).toContain('"minute";r=2')
  expect((await ask('GET', '/v1/lookup?count=x')).json().type).toBe('urn:weir:problem:cost-unreadable')
  const most = await Promise.all([costMax, costMax + 1].map((count) => ask('GET', `/v1/lookup?count=${count}`)))
  expect(most.map((answer) => answer.json().type)).toEqual([
    'urn:weir:problem:cost-exceeds-limit',
    'urn:weir:problem:cost-unreadable',
  ])
  // No waiting admits it.
  expect(most[0]?.headers).not.toHaveProperty('retry-after')
  const bulk = await ask('POST', '/v1/bulk')
  expect([bulk.statusCode, bulk.json().type]).toEqual([400, 'urn:weir:problem:cost-unreadable'])
  expect((await ask('GET', '/v1/tenants?tenant=t')).headers.ratelimit).toContain('"per-tenant";r=8')
})

it('takes the address of the caller from the gateway', async () => {
  const from = async (method: string, address: string) =>
    (await ask(method, '/', { 'x-api-key': 'wrong', 'x-forwarded-for': `9.9.9.9, ${address}` })).statusCode
  expect([await from('GET', '192.0.2.1'), await from('PUT', '192.0.2.2')]).toEqual([401, 401])
  expect(new Set(decisions.records.map(({ key }) => key)).size).toBe(2)
})

it('refuses headers of a peer that is no trusted proxy, and says which setting names those', async () => {
  const answer = await ask('GET', '/', acme, '', '192.0.2.7')
  expect([answer.statusCode, answer.json().type]).toEqual([403, 'urn:weir:problem:untrusted-proxy'])
  expect(answer.json().detail).toContain('192.0.2.7')
  expect(answer.json().detail).toContain('identity.trustedProxies')
  expect(decisions.records).toEqual([])
})

it('refuses more than 200 headers before it believes any of them, in the words that the gateway asked for', async () => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`a-${at}`, 'a']))
  const plain = await ask('GET', '/', { ...acme, ...many })
  expect([plain.statusCode, plain.json().type]).toEqual([431, 'urn:weir:problem:headers-too-large'])
  const asked = await ask('GET', '/', { ...acme, ...many }, '?deny_status=403')
  expect([asked.statusCode, asked.headers['x-limit-status']]).toEqual([403, '431'])
  for (const url of ['/v1/check', '/v1/settle', '/v1/nothing']) {
    const answer = await apps.api.inject({ method: 'POST', url, headers: { ...acme, ...many }, payload: {} })
    expect([url, answer.statusCode]).toEqual([url, 431])
  }
  expect(decisions.records).toEqual([])
})

it('counts a caller whose proxy sends an empty X-Forwarded-For by the address of that proxy', async () => {
  const { headers } = await ask('GET', '/', { ...acme, 'x-forwarded-for': '' })
  expect(headers.ratelimit).toBe('"minute";r=5;t=50, "per-ip";r=49;t=50')
})

it('charges a request that the gateway asks about twice once, under the id that its configuration sends', async () => {
  const again = async (headers: Record<string, string>, query: string) =>
    (await ask('GET', '/', headers, query)).headers
  const [first, second] = [await again(acme, '?request_id=0123456789'), await again(acme, '?request_id=0123456789')]
  expect(second['weir-decision']).toBe(first['weir-decision'])
  // What a client can send counts for nothing: a header, or a query that the gateway passed on.
  const forged = { ...acme, 'x-request-id': '0123456789', 'idempotency-key': '0123456789' }
  expect((await again(forged, '')).ratelimit).toContain('"minute";r=4')
  const kept = await ask('GET', '/?request_id=0123456789', acme, '?request_id=0123456789')
  expect(kept.headers.ratelimit).toContain('"minute";r=3')
})

it.each(['?deny_status=429', '?deny_status=403&deny_status=403', '?request_id=short', '?deny-status=403'])(
  'refuses the options %s by name',
  async (query) => {
    const answer = await ask('GET', '/', acme, query)
    expect([answer.statusCode, answer.json().type]).toEqual([400, 'urn:weir:problem:bad-request'])
    expect(answer.json().detail).toMatch(/deny_status|request_id/)
  },
)

/**
 * A client's `POST /v1/search?q=a%20b`, as the gateways' own programs sent it here with the snippets of
 * docs/integrations.
 */
const recorded = {
  'Traefik 3.6.12': `GET /v1/authorize HTTP/1.1
Host: 127.0.0.1:8081
User-Agent: Go-http-client/1.1
X-Api-Key: acme-key
X-Forwarded-For: 192.0.2.5
X-Forwarded-Host: api.test
X-Forwarded-Method: POST
X-Forwarded-Proto: http
X-Forwarded-Uri: /v1/search?q=a%20b
Accept-Encoding: gzip`,
  'Envoy 1.40.0': `POST /v1/authorize/v1/search?q=a%20b HTTP/1.1
host: api.test
content-length: 0
x-forwarded-for: 192.0.2.5
x-api-key: acme-key
x-envoy-internal: true
x-envoy-expected-rq-timeout-ms: 2000`,
}

it.each(Object.entries(recorded))('understands what %s sent', async (_, text) => {
  const [requestLine = '', ...lines] = text.split('\n')
  const [method, url = ''] = requestLine.split(' ')
  const headers = Object.fromEntries(lines.map((line) => line.split(': ')))
  const answer = await askByPath(method ?? '', url, headers)
  expect([answer.statusCode, answer.headers['x-weir-subject']]).toEqual([200, 'acme'])
  expect(decisions.records).toMatchObject([{ route: 'POST /v1/search', method: 'POST', cost: 5, subject: 'acme' }])
})

it('an IPv6 caller is the network of identity.ipv6Prefix, and the check API counts the same one', async () => {
  const { api, records } = await openMemoryIngress(`
version: 1
identity: { ipv6Prefix: 56, anonymous: visitor, trustedProxies: [127.0.0.1] }
plans: { visitor: { limits: [] } }
limits: { per-ip: { algorithm: fixed_window, size: 2, window: 1m, by: [ip], applies: all } }
subjects: { acme: { plan: visitor } }
`)
  const asked = { 'x-original-method': 'GET', 'x-original-uri': '/' }
  const from = async (address: string) =>
    (await api.inject({ url: '/v1/authorize', headers: { ...asked, 'x-forwarded-for': address } })).statusCode
  const codes = [await from('2001:db8:77:100::1'), await from('2001:db8:77:1ff::2'), await from('2001:db8:77:1aa::3')]
  expect(codes).toEqual([200, 200, 429])
  expect(await from('2001:db8:77:200::1')).toBe(200)
  expect(records.map(({ subject }) => subject)).toContain('ip:2001:db8:77:100::/56')
  const payload = { subject: 'acme', ip: '2001:db8:77:1bb::9' }
  const checked = await api.inject({
    method: 'POST',
    url: '/v1/check',
    headers: { authorization: 'Bearer root' },
    payload,
  })
  expect(checked.json()).toMatchObject({ allowed: false, denied_by: 'per-ip' })
})
