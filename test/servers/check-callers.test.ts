import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, onTestFinished, test } from 'vitest'
import { send } from '../support/gateways/send.ts'
import { startIngressStack } from '../support/ingress-stack.ts'
import { readMetric } from '../support/read-metric.ts'
import { type Issuer, openIssuer } from './identity/open-issuer.ts'

const policyOf = ({ url, jwksUrl }: Issuer) => ({
  version: 1,
  identity: {
    jwt: [{ issuer: url, jwksUrl, audience: 'api', allowPrivate: true, plan: 'free' }],
    // Requests come from there.
    trustedHeaders: { from: ['127.0.0.5/32'], subject: 'x-user', plan: 'free' },
    anonymous: 'free',
  },
  plans: { free: { limits: ['week'] } },
  limits: { week: { algorithm: 'fixed_window', window: '7d', size: 1_000 } },
  subjects: { acme: { plan: 'free' }, other: { plan: 'free' } },
  tokens: { ci: { sha256: sha256('ci-token'), scopes: ['check'] } },
})

interface Result {
  readonly allowed?: boolean
  readonly limits?: readonly { readonly used: number }[]
  readonly problem?: { readonly type: string }
}

async function open() {
  const issuer = await openIssuer()
  const { ingress, close } = await startIngressStack(policyOf(issuer))
  onTestFinished(close)
  const ask = async (path: string, headers: Readonly<Record<string, string>>, value: unknown) => {
    const answer = await send(ingress.api, {
      method: 'POST',
      path,
      body: Buffer.from(JSON.stringify(value)),
      headers: { 'content-type': 'application/json', ...headers },
    })
    return { status: answer.status, body: JSON.parse(answer.body) }
  }
  return {
    ingress,
    issuer,
    check: (headers: Readonly<Record<string, string>>, value: unknown) => ask('/v1/check', headers, value),
    async batch(headers: Readonly<Record<string, string>>, checks: readonly unknown[]) {
      const { status, body } = await ask('/v1/check/batch', headers, { checks })
      const results: readonly Result[] = body.results ?? []
      return { status, results }
    },
  }
}

const forbidden = 'urn:weir:problem:forbidden'

test('callers with a JWT or a trusted header check their own subject, alone and in batches, and no other', async () => {
  const { issuer, check, batch } = await open()
  const jwt = async (sub: string) => ({
    authorization: `Bearer ${await issuer.token(Date.now(), { claims: { sub } })}`,
  })
  const callers = [
    [await jwt('acme'), 'acme'],
    [await jwt('auth0|7'), 'auth0|7'],
    [{ 'x-user': 'other' }, 'other'],
    [{ 'x-user': 'partner-7' }, 'partner-7'],
  ] as const
  for (const [headers, subject] of callers) {
    const own = await check(headers, {})
    expect([own.status, own.body.allowed, own.body.limits[0].used]).toEqual([200, true, 1])
    expect((await check(headers, { subject, cost: 2 })).body.limits[0].used).toBe(3)
    for (const about of [
      { subject: 'third' },
      { subject: subject === 'acme' ? 'other' : 'acme' },
      { key: 'acme-key' },
    ]) {
      const { status, body } = await check(headers, about)
      expect([status, body.type]).toEqual([403, forbidden])
    }
    const { status, results } = await batch(headers, [{}, { subject }, { subject: 'third' }, { key: 'any' }])
    expect(status).toBe(200)
    expect(results.map(({ limits, problem }) => limits?.[0]?.used ?? problem?.type)).toEqual([
      4,
      5,
      forbidden,
      forbidden,
    ])
  }
  const good = await jwt('acme')
  for (const headers of [
    {},
    { authorization: `${good.authorization}x` },
    { authorization: 'Bearer wrong', 'x-user': 'acme' },
  ]) {
    expect((await check(headers, {})).status).toBe(401)
    expect((await batch(headers, [{}])).status).toBe(401)
  }
})

test('32 checks of one batch are one call of the script, and a hundred are four', async () => {
  const { ingress, batch } = await open()
  const token = { authorization: 'Bearer ci-token' }
  const callsOf = async (many: number) => {
    const calls = () => readMetric(ingress.ops, 'weir_redis_call_decisions_count')
    const decided = () => readMetric(ingress.ops, 'weir_decisions_total{entry_point="batch"')
    const before = [await calls(), await decided()]
    const checks = Array.from({ length: many }, (_, n) => ({ subject: n % 2 === 0 ? 'acme' : 'other' }))
    const { results } = await batch(token, checks)
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(many)
    return [(await calls()) - (before[0] ?? 0), (await decided()) - (before[1] ?? 0)]
  }
  expect(await callsOf(32)).toEqual([1, 32])
  expect(await callsOf(100)).toEqual([4, 100])
})

test('a token whose issuer is down or silent is 503 with Retry-After through the proxy and the check API, and 401 for gateways, which may serve what is 503', async () => {
  const { ingress, issuer, check } = await open()
  const authorization = `Bearer ${await issuer.token(Date.now())}`
  for (const behaviour of ['silent', 'down'] as const) {
    issuer.state.behaviour = behaviour
    const proxied = await send(ingress.proxy, { headers: { authorization } })
    expect([proxied.status, proxied.headers['retry-after']]).toEqual([503, '10'])
    expect(JSON.parse(proxied.body).type).toMatch(/#temporary-reduced-capacity$/)
    expect(proxied.headers).toHaveProperty('weir-decision')
    expect((await check({ authorization }, {})).status).toBe(503)
    const asked = await send(ingress.api, { path: '/v1/authorize/any', headers: { authorization } })
    expect([asked.status, asked.headers['www-authenticate'], asked.headers['retry-after']]).toEqual([
      401,
      'Bearer',
      undefined,
    ])
  }
})
