import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, onTestFinished, test } from 'vitest'
import { startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { send } from '../support/gateways/send.ts'
import { startIngressStack } from '../support/ingress-stack.ts'
import { forFile } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { type Issuer, openIssuer } from './identity/open-issuer.ts'

const upstream = await forFile(startPlainUpstream())

/** Two of each value, and longer than any run. */
const two = { algorithm: 'fixed_window', window: '7d', size: 2, onUnavailable: 'deny' }
const ownRefusal = {
  headers: 'x-ratelimit',
  body: '{"error":{"code":"{{limit}}","retry":{{retry_after}},"request":"{{decision}}"}}',
}
const policyOf = ({ url, jwksUrl }: Issuer) => ({
  version: 1,
  identity: {
    jwt: [{ issuer: url, jwksUrl, audience: 'api', allowPrivate: true, plan: 'free' }],
    anonymous: 'free',
    // Requests come from there.
    trustedProxies: ['127.0.0.5/32'],
  },
  plans: { free: { limits: [] } },
  limits: {
    'per-user': { ...two, by: ['path:user'] },
    'per-org': { ...two, by: ['claim:org'] },
    'per-session': { ...two, by: ['cookie:sid'] },
    'per-phone': { ...two, by: ['body:/phone'] },
  },
  routes: [
    { match: 'GET /v1/users/:user', limits: ['per-user'] },
    { match: 'GET /v1/org', limits: ['per-org'] },
    { match: 'GET /v1/session', limits: ['per-session'] },
    { match: 'POST /v1/codes', limits: ['per-phone'] },
    { match: 'GET /v1/own/:user', limits: ['per-user'], refusal: ownRefusal },
    { match: 'GET /v1/quiet/:user', limits: ['per-user'], refusal: { headers: 'none' } },
  ],
  upstreams: { api: { url: upstream.url } },
  subjects: { acme: { plan: 'free' } },
  tokens: { ci: { sha256: sha256('ci-token'), scopes: ['check'] } },
})

type Headers = Readonly<Record<string, string>>

/** What is left of the limit after a request: -1 once it is refused. */
const leftBy = (allowed: boolean, left: unknown) => (allowed ? Number(left) : -1)

async function open() {
  const issuer = await openIssuer()
  const { redis, ingress, close } = await startIngressStack(policyOf(issuer))
  onTestFinished(close)
  const left = async (origin: string, path: string, headers: Headers) => {
    const answer = await send(origin, { path, headers })
    return leftBy(answer.status === 200, /r=(\d+)/.exec(String(answer.headers.ratelimit))?.[1])
  }
  return {
    ask: (door: 'proxy' | 'api', path: string, headers: Headers = {}) => send(ingress[door], { path, headers }),
    proxy: (path: string, headers: Headers = {}) => left(ingress.proxy, path, headers),
    authorize: (path: string, headers: Headers = {}) => left(ingress.api, `/v1/authorize${path}`, headers),
    /** Through the proxy, with the status. */
    async codes(body: string | Buffer, headers: Headers = { 'content-type': 'application/json' }) {
      const answer = await send(ingress.proxy, { method: 'POST', path: '/v1/codes', body: Buffer.from(body), headers })
      return [answer.status, leftBy(answer.status === 200, /r=(\d+)/.exec(String(answer.headers.ratelimit))?.[1])]
    },
    async check(path: string, authorization: string, more: object = {}) {
      const answer = await send(ingress.api, {
        method: 'POST',
        path: '/v1/check',
        body: Buffer.from(JSON.stringify({ route: `GET ${path}`, ...more })),
        headers: { 'content-type': 'application/json', authorization },
      })
      const { allowed, limits } = JSON.parse(answer.body)
      return leftBy(allowed, limits?.[0]?.remaining)
    },
    token: async (claims: object) =>
      `Bearer ${await issuer.token(Date.now(), { claims: { sub: 'someone', ...claims } })}`,
    async keys(pattern: string) {
      const client = await openLimiterRedis(redis.address)
      return (await client.keys(pattern)).toSorted()
    },
  }
}

test('a limit by a parameter of the path, a claim or a cookie has one count through every door that knows the value', async () => {
  const { proxy, authorize, check, token, keys } = await open()
  const ci = 'Bearer ci-token'

  expect([await proxy('/v1/users/ann'), await authorize('/v1/users/%61nn')]).toEqual([1, 0])
  expect(await check('/v1/users/ann', ci, { subject: 'acme' })).toBe(-1)
  expect([await check('/v1/users/bob', ci, { subject: 'acme' }), await proxy('/v1/users/bob')]).toEqual([1, 0])

  const [red, blue] = [await token({ org: 'red' }), await token({ org: 'blue', sub: 'else' })]
  expect([await proxy('/v1/org', { authorization: red }), await check('/v1/org', red)]).toEqual([1, 0])
  expect([await authorize('/v1/org', { authorization: red }), await proxy('/v1/org', { authorization: blue })]).toEqual(
    [-1, 1],
  )
  // A token of Weir's own and a caller without one have no claim: both count as the empty value.
  expect([await check('/v1/org', ci, { subject: 'acme' }), await proxy('/v1/org')]).toEqual([1, 0])

  expect([
    await proxy('/v1/session', { cookie: 'a=1; sid=top-secret' }),
    await authorize('/v1/session', { cookie: 'sid="top-secret"' }),
    await proxy('/v1/session', { cookie: 'sid=top-secret' }),
    await proxy('/v1/session', { cookie: 'sid=another' }),
  ]).toEqual([1, 0, -1, 1])
  // The check API knows no cookies.
  expect([await check('/v1/session', ci, { subject: 'acme' }), await proxy('/v1/session')]).toEqual([1, 0])

  expect(await keys('*:per-user:*')).toEqual([
    'weir:1:{_global}:per-user:path.user=ann',
    'weir:1:{_global}:per-user:path.user=bob',
  ])
  expect((await keys('*secret*')).length).toBe(0)
})

test('a limit by a value of the body has one count through the proxy and the check API, and the very bytes reach the upstream', async () => {
  const { codes, check, keys } = await open()
  const ci = 'Bearer ci-token'
  const sent = '{ "phone" : "+49 170" }'
  expect(await codes(sent)).toEqual([200, 1])
  expect(upstream.seen.at(-1)?.bodySha256).toBe(sha256(sent))
  const asked = { subject: 'acme', route: 'POST /v1/codes' }
  // As large as the proxy reads one.
  const large = { phone: '+49 170', padding: 'x'.repeat(65_000) }
  expect(await check('', ci, { ...asked, body: large })).toBe(0)
  expect(await codes('{"phone":"+49 170"}')).toEqual([429, -1])
  expect(await codes('{"phone":"+49 171"}')).toEqual([200, 1])
  // No JSON, two meanings, another type: all count as the empty value.
  expect(await codes('{"phone":"+49 170","phone":"+49 172"}')).toEqual([200, 1])
  expect(await codes('phone=1', { 'content-type': 'application/x-www-form-urlencoded' })).toEqual([200, 0])
  expect(await check('', ci, asked)).toBe(-1)
  // What could not be read is not served, and costs nothing.
  expect(await codes(JSON.stringify({ phone: 'x'.repeat(70_000) }))).toEqual([413, -1])
  expect(await codes(sent, { 'content-type': 'application/json', 'content-encoding': 'gzip' })).toEqual([415, -1])
  expect((await keys('*:per-phone:*')).map((key) => key.split(':').at(-1))).toEqual([
    'body.%2Fphone=',
    'body.%2Fphone=%2B49%20170',
    'body.%2Fphone=%2B49%20171',
  ])
})

test("a route's own refusal is what its clients get from the proxy, and gateways from /v1/authorize; others are as ever", async () => {
  const { ask, proxy } = await open()
  const names = (headers: object) => Object.keys(headers).filter((name) => name.includes('ratelimit'))
  expect([await proxy('/v1/own/own-user'), await proxy('/v1/own/own-user')]).toEqual([1, 0])
  for (const [door, path] of [
    ['proxy', '/v1/own/own-user'],
    ['api', '/v1/authorize/v1/own/own-user'],
  ] as const) {
    const { status, headers, body } = await ask(door, path)
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([429, 'application/json', 'no-store'])
    expect(names(headers)).toEqual(['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
    const retry = Number(headers['retry-after'])
    expect(JSON.parse(body)).toEqual({ error: { code: 'per-user', retry, request: headers['weir-decision'] } })
  }
  const translated = await ask('api', '/v1/authorize?deny_status=403', {
    'x-original-method': 'GET',
    'x-original-uri': '/v1/own/own-user',
  })
  const { 'x-limit-status': limitStatus, 'x-weir-problem': problem } = translated.headers
  expect([translated.status, limitStatus, JSON.parse(translated.body).error.code]).toEqual([403, '429', 'per-user'])
  expect(JSON.parse(String(problem)).type).toMatch(/quota-exceeded$/)
  const quiet = await ask('proxy', '/v1/quiet/own-user')
  expect([quiet.status, quiet.headers['content-type'], names(quiet.headers)]).toEqual([
    429,
    'application/problem+json',
    [],
  ])
  expect(quiet.headers['retry-after']).toBeDefined()
  const plain = await ask('proxy', '/v1/users/own-user')
  expect([plain.status, JSON.parse(plain.body).type]).toEqual([429, expect.stringMatching(/quota-exceeded$/)])
  expect(names(plain.headers)).toEqual(['ratelimit-policy', 'ratelimit'])
})
