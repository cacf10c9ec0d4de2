import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { createRlsClient, type RlsRequest } from '../../support/envoy-ratelimit/rls-client.ts'
import { startEnvoyOverGrpc } from '../../support/gateways/envoy.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { countOf, readDecisions } from '../../support/servers/read-decisions.ts'

const subject = 'grpc'
const key = `key-of-${subject}`
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

const stack = await forFile(openIngressStack(policy))
const weir = await stack.start({ WEIR_ADMIN_TOKEN_SHA256: sha256('root') })

test("Envoy's filter, Envoy's own client and the entry points over HTTP share one limit, and every decision has its record", async () => {
  const upstream = await forTest(startPlainUpstream())
  const envoy = await forTest(startEnvoyOverGrpc({ grpc: weir.grpc, upstream: upstream.url }))
  const client = await forTest(createRlsClient(weir.grpc))

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

  const records = await readDecisions(
    stack.kafka,
    (one) => one.subject === subject,
    (all) => countOf(all) >= 28,
  )
  const counts = ['allow', 'deny'].map((outcome) => countOf(records.filter((one) => one.outcome === outcome)))
  expect(counts).toEqual([19, 9])
})
