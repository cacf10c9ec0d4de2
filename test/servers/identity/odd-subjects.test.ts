import type { Limit } from '@weir/core/limits/limit.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { subjectOfKey } from '@weir/redis/recorded-scope.ts'
import { expect, test } from 'vitest'
import { createRlsClient } from '../../support/envoy-ratelimit/rls-client.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forTest } from '../../support/opened.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { openLimiterRedis } from '../../support/test-redis.ts'
import { openIssuer } from './open-issuer.ts'

/** Ids that OpenID Connect, and what issuers make of it, lets a `sub` be. */
const good = [
  'auth0|5f7c8ec7c33c6c004bbafe82',
  'google-oauth2|103547991597142817347',
  'adfs|DOMAIN\\user',
  'did:key:z6Mk',
  'CN=Ann Lee, OU=Sales, O="Example, Inc.", C=US',
  'ann lee',
  'a  b',
  'a, b',
  '248289761001',
  '0',
  '-',
  '.',
  '..',
  'ann@example.com',
  '"ann"@example.com',
  'https://id.example/users/1?x=y#z',
  'a/b',
  'a//b',
  '/a',
  'a/../b',
  '%2F',
  'a%20b',
  'a+b',
  'a&b=c',
  'a;b',
  'a:b',
  '{a}',
  'a}b{',
  '[a]',
  '<a>',
  "o'neil",
  'a`b',
  '$a',
  '~',
  'null',
  'a\\',
  '=1+1',
  'x'.repeat(129),
  'x y'.repeat(85),
  '%'.repeat(255),
  '{'.repeat(255),
]
const bad = [
  '',
  ' a',
  'a ',
  'x'.repeat(256),
  'ü',
  'a\u00a0b',
  '你好',
  'a\tb',
  'a\nb',
  'a\0b',
  '_a',
  'ip:1.2.3.4',
  '\u202ea',
]

/** What each entry point leaves of a subject's limit, one after the other; its status where it refuses. */
async function open() {
  const upstream = await forTest(startPlainUpstream())
  const issuer = await openIssuer()
  const stack = await forTest(
    startIngressStack({
      version: 1,
      identity: {
        jwt: [{ issuer: issuer.url, jwksUrl: issuer.jwksUrl, audience: 'api', allowPrivate: true, plan: 'free' }],
        unknown: 'free',
      },
      plans: { free: { limits: ['week'] } },
      limits: { week: { algorithm: 'fixed_window', window: '7d', size: 9, onUnavailable: 'deny' } },
      upstreams: { api: { url: upstream.url } },
      tokens: { ci: { sha256: sha256('ci-token'), scopes: ['check'] } },
    }),
  )
  const grpc = await forTest(createRlsClient(stack.ingress.grpc))
  const { proxy, api } = stack.ingress
  const left = async (asked: ReturnType<typeof send>) => {
    const { status, headers, body } = await asked
    if (status !== 200) return status
    return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1] ?? JSON.parse(body).limits[0].remaining)
  }
  const ask = async (subject: string) => {
    const headers = { authorization: `Bearer ${await issuer.token(Date.now(), { claims: { sub: subject } })}` }
    const ci = { authorization: 'Bearer ci-token', 'content-type': 'application/json' }
    const body = Buffer.from(JSON.stringify({ subject }))
    const descriptors = [{ entries: [{ key: 'subject', value: subject }] }]
    return [
      await left(send(proxy, { path: '/x', headers })),
      await left(send(api, { path: '/v1/authorize/x', headers })),
      await left(send(api, { method: 'POST', path: '/v1/check', headers: ci, body })),
      await grpc.shouldRateLimit({ domain: 'mesh', descriptors }).then(
        ({ overall_code: code, statuses }) => (code === 'OK' ? (statuses[0]?.limit_remaining ?? code) : code),
        () => 'error',
      ),
    ]
  }
  return { ...stack, upstream, ask }
}

test('An id as OpenID Connect has them has one count through every entry point, its own name at the upstream, and is found again by its key and its records', async () => {
  const { ask, upstream, redis, kafka } = await open()
  for (const subject of good) {
    expect([subject, await ask(subject)]).toEqual([subject, [8, 7, 6, 5]])
    expect(upstream.seen.at(-1)?.headers['x-weir-subject']).toBe(subject)
  }
  const client = await openLimiterRedis(redis.address)
  const limit = { by: [{ kind: 'subject' }] } as unknown as Limit
  const found = new Set((await client.keys('weir:1:*week*')).map((key) => subjectOfKey(key, limit)))
  expect(good.filter((id) => !found.has(id))).toEqual([])
  const decisions = await readDecisions(
    kafka,
    ({ outcome }) => outcome === 'allow',
    (all) => all.length >= 4 * good.length,
  )
  expect(new Set(decisions.map(({ subject }) => subject))).toEqual(new Set(good))
})

test('An id that is too long, has a space at an end or other characters, or is of Weir’s own is none anywhere', async () => {
  const { ask } = await open()
  for (const subject of bad) {
    const [throughProxy, asked, checked, overGrpc] = await ask(subject)
    expect([subject, throughProxy, asked, checked]).toEqual([subject, 401, 401, 400])
    expect(overGrpc).not.toEqual(expect.any(Number))
  }
})
